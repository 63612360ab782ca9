"""Reading the traces of other tools: classes of equal ranks, roles, groups."""

import numpy as np

from r2cc_simai.chakra.folder import read_folder


def test_equal_ranks_share_a_class_and_differ_in_their_tables(et, job):
    """Four ranks in a ring: 0 and 1 in group 1, 2 and 3 in group 2; rank 3 also computes."""

    def rank(me, group):
        return [et.coll(1, 8, group), et.send(2, (me + 1) % 4, 5, deps=[1]), et.recv(3, (me - 1) % 4, 5)]

    ranks = {me: rank(me, "1" if me < 2 else "2") for me in range(4)}
    ranks[3].append(et.comp(4))
    traces = read_folder(job(ranks, {"1": [0, 1], "2": [2, 3], "3": [0, 3]}))
    assert traces.rank_class.tolist() == [0, 0, 0, 1]
    assert [len(trace) for trace in traces.classes] == [3, 4]
    assert traces.groups == ((0, 1), (2, 3), (0, 3))
    assert traces.group_ids == (1, 2, 3)
    assert traces.rank_groups.tolist() == [[0], [0], [1], [1]]
    assert traces.rank_peers.tolist() == [[1, 3], [2, 0], [3, 1], [0, 2]]
    assert (traces.replica, traces.manifest, traces.notes) == (None, None, ())


def test_the_group_of_all_ranks_is_there_if_it_is_used(et, job):
    traces = read_folder(job({0: [et.coll(1, 8, "")], 1: [et.coll(1, 8, "0")], 2: [et.coll(1, 8, "00")]}))
    assert (traces.group_ids, traces.groups) == ((0,), ((0, 1, 2),))
    assert traces.rank_groups.tolist() == [[0], [0], [0]]


def test_roles_that_a_rank_does_not_have_are_minus_one(et, job):
    traces = read_folder(job({0: [et.comp(1)], 1: [et.send(1, 2, 8)], 2: [et.recv(1, 1, 8)]}))
    assert traces.rank_groups.shape == (3, 0)
    assert traces.rank_peers.tolist() == [[-1], [2], [1]]
    assert traces.rank_class.dtype == traces.rank_peers.dtype == np.int64


def test_progress_is_told_file_by_file(et, job):
    told = []
    read_folder(job({rank: [et.comp(1)] for rank in range(70)}), progress=lambda *done: told.append(done))
    assert told == [(done, 70) for done in range(1, 71)]


def test_notes_of_the_files_are_kept(et, job):
    traces = read_folder(job({0: et.file([et.comp(1)], version="9"), 1: [et.coll(1, 0, "")]}))
    assert [(one.severity, one.kind, one.file) for one in traces.notes] == [
        ("note", "version", "t.0.et"),
        ("note", "zero-bytes", "t.1.et"),
    ]


def test_other_files_of_the_folder_do_not_matter(et, job):
    prefix = job({0: [et.comp(1)]})
    for name in ("t.et", "t.00.et", "t.-1.et", "t.class.et", "t.0.et.gz", "t.1.json", "t.٣.et"):
        (prefix.parent / name).write_bytes(b"x")
    assert read_folder(prefix).n_ranks == 1
    assert read_folder(prefix.parent).n_ranks == 1
