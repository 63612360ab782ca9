"""What is found in broken traces: file, node and reason of every kind of error across files."""

import json
import os

import pytest

from r2cc_simai.chakra.finding import NOTE, WARNING
from r2cc_simai.chakra.folder import read_folder
from r2cc_simai.chakra.validate import validate, validate_file
from r2cc_simai.chakra.write import write_workload
from r2cc_simai.errors import InputError

PAIR = {"1": [0, 1]}


def errors(prefix, **options):
    """(kind, file, node, reason) of every error."""
    return [
        (one.kind, one.file, one.node, one.reason)
        for one in validate(prefix, **options).findings
        if one.severity == "error"
    ]


def others(prefix):
    return [(one.severity, one.kind, one.file, one.node) for one in validate(prefix).findings]


def test_a_sound_trace(et, job):
    """Two ranks: compute, AllReduce, a message there and back, and one to the group of all ranks."""

    def rank(me):
        nodes = [et.comp(1), et.coll(2, 64, deps=[1]), et.coll(3, 8, "", deps=[2])]
        return [*nodes, et.send(4, 1 - me, 5, tag=me), et.recv(5, 1 - me, 5, tag=1 - me)]

    report = validate(job({0: rank(0), 1: rank(1)}, PAIR))
    assert report.findings == ()
    assert (report.files, report.ranks, report.nodes) == (2, 2, 10)


def test_a_dependency_that_does_not_exist(et, job):
    """astra-sim#338: name file and node."""
    prefix = job({0: [et.comp(1)], 1: [et.comp(1), et.comp(2, [1, 77])]})
    line = ("missing-dependency", "t.1.et", 2, "waits for node 77, which does not exist")
    assert errors(prefix) == [line]
    with pytest.raises(InputError, match=r"^t\.1\.et: node 2: waits for node 77, which does not exist$"):
        read_folder(prefix)


def test_cycles_are_printed_as_a_path(et, job):
    """chakra#189 and #134."""
    prefix = job({0: [et.comp(12, [7]), et.comp(3), et.comp(7, [12, 3])], 1: [et.comp(5, [5])]})
    start = "a cycle of dependencies, each waits for the next: "
    assert errors(prefix) == [
        ("cycle", "t.0.et", 12, start + "12 -> 7 -> 12"),
        ("cycle", "t.1.et", 5, start + "5 -> 5"),
    ]
    with pytest.raises(InputError, match=r"^t\.0\.et: node 12: .*: 12 -> 7 -> 12$"):
        read_folder(prefix)


def test_a_collective_of_zero_bytes_is_a_note(et, job):
    """astra-sim PR#102: zero payload, go on."""
    ranks = {rank: [et.coll(1, 0), et.comp(2, [1])] for rank in (0, 1)}
    prefix = job(ranks, PAIR)
    assert others(prefix) == [(NOTE, "zero-bytes", "t.0.et", 1), (NOTE, "zero-bytes", "t.1.et", 1)]
    assert read_folder(prefix).n_ranks == 2


def test_sizes_that_look_like_element_counts_are_warnings(et, job):
    """stage#29: elements instead of bytes, two or four times off."""
    nodes = [et.node(1, et.COLL, comm_type=0, comm_size=1024, pg_name="1", tensor_size=4096)]
    assert others(job({0: nodes, 1: nodes}, PAIR)) == [
        (WARNING, "element-count", "t.0.et", 1),
        (WARNING, "element-count", "t.1.et", 1),
    ]


def test_groups_of_unequal_size_are_fine(et, job):
    """astra-sim#371: 4 + 6 ranks."""
    groups = {"1": [0, 1, 2, 3], "2": [4, 5, 6, 7, 8, 9]}
    prefix = job({rank: [et.coll(1, 60, "1" if rank < 4 else "2")] for rank in range(10)}, groups)
    assert validate(prefix).findings == ()
    traces = read_folder(prefix)
    assert (len(traces.classes), [len(one) for one in traces.groups]) == (1, [4, 6])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (
            "coll(9, 64)",
            "coll(9, 64, kind=2)",
            "collective 2 of group 1 is ALL_REDUCE of 64 bytes; t.1.et: node 9 has ALL_GATHER of 64 bytes",
        ),
        (
            "coll(9, 64)",
            "coll(8, 65)",
            "collective 2 of group 1 is ALL_REDUCE of 64 bytes; t.1.et: node 8 has ALL_REDUCE of 65 bytes",
        ),
        ("coll(9, 64)", "comp(9)", "collective 2 of group 1 is ALL_REDUCE of 64 bytes; t.1.et has 1 only"),
    ],
)
def test_members_of_a_group_that_do_not_issue_the_same(first, second, expected, et, job):
    def ranks(*last):
        return {k: [et.coll(1, 8), et.comp(2), eval(f"et.{one}", {"et": et})] for k, one in enumerate(last)}

    assert errors(job(ranks(first, second), PAIR)) == [("collective-mismatch", "t.0.et", 9, expected)]


def test_the_rank_that_issues_more_is_the_one_named(et, job):
    prefix = job({0: [et.comp(1)], 1: [et.coll(4, 8)]}, PAIR)
    reason = "collective 1 of group 1 is ALL_REDUCE of 8 bytes; t.0.et has 0 only"
    assert errors(prefix) == [("collective-mismatch", "t.1.et", 4, reason)]


def test_the_group_of_all_ranks_needs_all_ranks(et, job):
    prefix = job({0: [et.coll(1, 8, "0")], 1: [et.coll(1, 8, "")], 2: [et.comp(3)]})
    reason = "collective 1 of all ranks is ALL_REDUCE of 8 bytes; t.2.et has 0 only"
    assert errors(prefix) == [("collective-mismatch", "t.0.et", 1, reason)]


def test_sends_and_receives_without_a_partner(et, job):
    prefix = job(
        {
            0: [et.send(1, 1, 8), et.send(2, 1, 8), et.recv(3, 2, 8)],
            1: [et.recv(4, 0, 8)],
            2: [et.comp(1)],
        }
    )
    assert errors(prefix) == [
        (
            "unmatched-send",
            "t.0.et",
            2,
            "sends 8 bytes to rank 1 under tag 0, and no node of t.1.et receives that",
        ),
        (
            "unmatched-receive",
            "t.0.et",
            3,
            "receives 8 bytes from rank 2 under tag 0, and no node of t.2.et sends that",
        ),
    ]


def test_messages_whose_sizes_or_tags_differ_name_both_nodes(et, job):
    prefix = job(
        {
            0: [et.send(1, 1, 8, tag=3), et.send(2, 1, 500, tag=4)],
            1: [et.recv(5, 0, 9, tag=3), et.recv(6, 0, 500, tag=5)],
        }
    )
    assert errors(prefix) == [
        (
            "unequal-message",
            "t.0.et",
            1,
            "sends 8 bytes to rank 1 under tag 3, t.1.et: node 5 receives 9 bytes under tag 3",
        ),
        (
            "unequal-message",
            "t.0.et",
            2,
            "sends 500 bytes to rank 1 under tag 4, t.1.et: node 6 receives 500 bytes under tag 5",
        ),
    ]


def test_many_differences_are_counted(et, job):
    prefix = job({0: [et.send(k, 1, 8, tag=k) for k in range(1, 101)], 1: [et.comp(1)]})
    report = validate(prefix)
    assert len(report.findings) == 20
    assert report.errors == 100


def test_missing_ranks(et, job):
    prefix = job({0: [et.comp(1)], 3: [et.comp(1)]})
    reason = "there is no such file; the job has 4 ranks"
    assert errors(prefix) == [("missing-rank", "t.1.et", None, reason), ("missing-rank", "t.2.et", None, reason)]
    with pytest.raises(InputError, match=r"^t\.1\.et: there is no such file"):
        read_folder(prefix)


@pytest.mark.parametrize(
    ("ranks", "groups", "expected"),
    [
        ("coll(3, 8, '7')", PAIR, ("unknown-group", "t.0.et", 3, "uses group 7, which t.groups.json does not have")),
        (
            "coll(3, 8, '2')",
            {"1": [0, 1], "2": [1]},
            ("not-a-member", "t.0.et", 3, "uses group 2, of which rank 0 is no member"),
        ),
        (
            "coll(3, 8)",
            {"1": [0, 1], "5": [1, 9]},
            ("group-rank", "t.groups.json", None, "group 5: it has rank 9, which has no file; there are 2 ranks"),
        ),
        ("send(3, 2, 8)", PAIR, ("peer", "t.0.et", 3, "sends to or receives from rank 2; there are 2 ranks")),
        ("recv(3, 0, 8)", PAIR, ("peer", "t.0.et", 3, "sends to or receives from rank 0, which is its own")),
        (
            "comp(3)",
            {"0": [0, 1], "1": [0, 1]},
            (
                "group-number",
                "t.groups.json",
                None,
                "group 0: it is the group of all ranks and cannot be listed; numbers from 1 on are wanted",
            ),
        ),
    ],
)
def test_groups_and_peers_that_make_no_sense(ranks, groups, expected, et, job):
    prefix = job({0: [et.comp(1), eval(f"et.{ranks}", {"et": et})], 1: [et.comp(1)]}, groups)
    assert errors(prefix)[:1] == [expected]
    kind, file, node, reason = expected
    with pytest.raises(InputError) as raised:
        read_folder(prefix)
    assert str(raised.value) == f"{file}: {'' if node is None else f'node {node}: '}{reason}"
    assert ("not-compared" in {one.kind for one in validate(prefix).findings}) == (kind != "")


def test_unsorted_groups_are_a_warning_and_read_sorted(et, job):
    prefix = job({rank: [et.coll(1, 8)] for rank in range(3)}, {"1": [2, 0, 1]})
    (finding,) = validate(prefix).findings
    assert (finding.severity, finding.kind, finding.file) == (WARNING, "unsorted-group", "t.groups.json")
    assert finding.reason == "group 1: its ranks are not in ascending order, as ASTRA-sim wants them: [2, 0, 1]"
    assert read_folder(prefix).groups == ((0, 1, 2),)


BROKEN_GROUPS = {
    "no JSON": ("{", "not JSON"),
    "no object": ("[1]", "an object of groups is wanted"),
    "a text as key": ('{"dp": [0]}', "group 'dp': a number from 1 to 2147483647 is wanted as its key"),
    "a negative key": ('{"-1": [0]}', "group '-1': a number"),
    "no list": ('{"1": 5}', "group 1: a list of ranks is wanted, such as [0, 1]"),
    "an empty list": ('{"1": []}', "group 1: a list of ranks is wanted"),
    "no ranks": ('{"1": [0, "a"]}', "group 1: a list of ranks is wanted"),
    "a negative rank": ('{"1": [0, -1]}', "group 1: a list of ranks is wanted"),
    "true as a rank": ('{"1": [0, true]}', "group 1: a list of ranks is wanted"),
    "an object of ranks": ('{"1": {"0": 1}}', "group 1: a list of ranks is wanted"),
    "a rank twice": ('{"1": [0, 1, 0]}', "group 1: a rank occurs twice: [0, 1, 0]"),
    "a group twice": ('{"1": [0], "1": [1]}', "group 1 occurs twice"),
    "too deep": ("[" * 100_000, "not JSON"),
    "not text": ("\x00", "not JSON"),
}


@pytest.mark.parametrize(("text", "complaint"), BROKEN_GROUPS.values(), ids=BROKEN_GROUPS)
def test_broken_groups_are_one_line(text, complaint, et, job):
    prefix = job({0: [et.coll(1, 8)], 1: [et.coll(1, 8)]})
    (prefix.parent / "t.groups.json").write_text(text)
    for check in (validate, read_folder):
        with pytest.raises(InputError) as raised:
            check(prefix)
        assert str(raised.value).startswith(str(prefix.parent / "t.groups.json"))
        assert complaint in str(raised.value)
        assert "\n" not in str(raised.value)


def test_groups_that_are_used_but_not_there(et, job):
    prefix = job({0: [et.coll(1, 8)], 1: [et.coll(1, 8)]})
    with pytest.raises(InputError, match=r"t\.groups\.json: No such file"):
        validate(prefix)
    elsewhere = prefix.parent / "other.json"
    elsewhere.write_text(json.dumps(PAIR))
    assert validate(prefix, groups=elsewhere).findings == ()
    assert read_folder(prefix, groups=elsewhere).groups == ((0, 1),)


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (b"", "empty", "empty; it must begin with the metadata"),
        (b"\x1f\x8b\x08\x00", "compressed", "compressed with gzip; decompress it first (gunzip)"),
        (b"\x28\xb5\x2f\xfd\x00", "compressed", "compressed with zstd; decompress it first (unzstd)"),
        (b'{"schema": 1}', "no-metadata", "it is text; a .et file is wanted"),
    ],
)
def test_files_that_are_no_traces(data, kind, reason, et, job):
    prefix = job({0: [et.comp(1)], 1: data})
    ((found, file, _, said),) = errors(prefix)
    assert (found, file) == (kind, "t.1.et")
    assert said.endswith(reason)
    with pytest.raises(InputError, match=r"^t\.1\.et: "):
        read_folder(prefix)


def test_a_truncated_file_is_told_with_the_node_and_the_byte(et, job):
    whole = et.file([et.comp(1), et.comp(2)])
    prefix = job({0: [et.comp(1)], 1: whole[:-2]})
    (finding,) = (one for one in validate(prefix).findings if one.severity == "error")
    assert (finding.kind, finding.file, finding.position, finding.offset) == ("no-trace", "t.1.et", 1, len(whole) - 6)
    assert finding.line == (
        f"t.1.et: node at position 1: broken or cut off at byte {len(whole) - 6} (after node 1): "
        "it wants 6 bytes where 4 are left"
    )


def test_an_unknown_version_is_a_note(et, job):
    prefix = job({0: et.file([et.comp(1)], version="0.1.0")})
    (finding,) = validate(prefix).findings
    assert (finding.severity, finding.reason) == (NOTE, "version '0.1.0' is unknown; read as 0.0.4")


def test_one_file_by_itself(et, job):
    prefix = job({3: [et.send(1, 0, 8), et.comp(2, [9])]})
    report = validate_file(prefix.parent / "t.3.et")
    assert [one.line for one in report.findings] == ["t.3.et: node 2: waits for node 9, which does not exist"]
    with pytest.raises(InputError, match=r"nothing\.et: No such file"):
        validate_file(prefix.parent / "nothing.et")


def test_prefixes_that_name_no_trace(et, job, tmp_path):
    for check in (validate, read_folder):
        with pytest.raises(InputError, match="no trace in this folder"):
            check(tmp_path)
        with pytest.raises(InputError, match=r"there is no file t\.0\.et"):
            check(tmp_path / "t")
        with pytest.raises(InputError, match="there is no folder"):
            check(tmp_path / "nowhere" / "t")
    prefix = job({0: [et.comp(1)]})
    with pytest.raises(InputError, match=r"one file of a trace; write .*/t for the whole of it"):
        read_folder(prefix.parent / "t.0.et")
    (prefix.parent / "t.0.et").rename(prefix.parent / "t.class0.et")
    for check in (validate, read_folder):
        with pytest.raises(InputError, match=r"a trace of classes cannot be read without t\.manifest\.json"):
            check(prefix)


@pytest.mark.parametrize("fold", [False, True])
def test_a_manifest_that_does_not_tell_the_truth(fold, workload_of, tmp_path):
    write_workload(workload_of(), tmp_path, fold=fold)
    assert validate(tmp_path).findings == ()
    path = tmp_path / "small.manifest.json"
    data = json.loads(path.read_text())
    data["rank_peers"][6] = [1]
    path.write_text(json.dumps(data))
    file = "small.class1.et" if fold else "small.6.et"
    reason = "its groups or peers are not those of rank 6 in small.manifest.json"
    assert errors(tmp_path)[0] == ("manifest", file, None, reason)
    with pytest.raises(InputError, match="its groups or peers are not those of rank 6"):
        read_folder(tmp_path)


def test_a_file_that_is_not_of_its_class(et, workload_of, tmp_path):
    write_workload(workload_of(), tmp_path)
    (tmp_path / "small.4.et").write_bytes(et.file([et.comp(1)]))
    reason = "differs from small.0.et, although both are of class 0 in small.manifest.json"
    assert errors(tmp_path)[0] == ("manifest", "small.4.et", None, reason)
    (tmp_path / "small.12.et").write_bytes(et.file([et.comp(1)]))
    assert ("manifest", "small.12.et", None, "small.manifest.json has 12 ranks") in errors(tmp_path)
    os.remove(tmp_path / "small.5.et")
    assert ("missing-rank", "small.5.et", None, "there is no such file; the job has 12 ranks") in errors(tmp_path)
    with pytest.raises(InputError, match=r"small\.5\.et: there is no such file"):
        read_folder(tmp_path)


def changed(**keys):
    return lambda data: data.update(keys)


BROKEN_MANIFESTS = {
    "a text": (lambda _: "x", "not JSON"),
    "a list": (lambda _: [], "a JSON object is wanted"),
    "another format": (changed(format=2), "format"),
    "an unknown key": (changed(ranks=1), "ranks: unknown key"),
    "no ranks": (changed(rank_class=[]), "rank_class: no ranks"),
    "too few groups": (changed(rank_groups=[]), "rank_groups: 0 entries, rank_class has 12"),
    "no such class": (changed(rank_class=[9] * 12), "rank_class: class 9 of rank 0; there are 2"),
    "another class": (changed(rank_class=[0] * 12), "classes.0: does not agree with rank_class"),
    "no such peer": (changed(rank_peers=[[99]] * 12), "rank_peers: rank 0 has a peer beyond rank 11"),
    "unequal roles": (changed(rank_peers=[[]] + [[0]] * 11), "rank_peers: ranks 0 and 1 of class 0 have unequal"),
}


@pytest.mark.parametrize(("change", "complaint"), BROKEN_MANIFESTS.values(), ids=BROKEN_MANIFESTS)
def test_broken_manifests_are_one_line(change, complaint, workload_of, tmp_path):
    write_workload(workload_of(), tmp_path)
    path = tmp_path / "small.manifest.json"
    data = json.loads(path.read_text())
    other = change(data)
    path.write_text(other if isinstance(other, str) else json.dumps(data if other is None else other))
    for check in (validate, read_folder):
        with pytest.raises(InputError) as raised:
            check(tmp_path)
        assert str(raised.value).startswith(str(path))
        assert complaint in str(raised.value)


def test_a_manifest_of_someone_else_is_passed_over(et, job):
    prefix = job({0: [et.comp(1)]})
    (prefix.parent / "t.manifest.json").write_text('{"by": "another tool"}')
    assert validate(prefix).findings == ()
    assert read_folder(prefix).manifest is None
