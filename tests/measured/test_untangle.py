"""Lines of several ranks in one stream: each rank's lines whole again, whatever came between."""

from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.measured.untangle import untangle


def test_tags_at_the_start_of_lines_go():
    assert untangle("[1,0]<stdout>:# size\n[1,3]<stderr>: hot\nplain\n") == ["# size", "hot", "plain", ""]


def test_a_line_that_another_rank_interrupts_is_put_together():
    text = "[1,0]<stdout>: 1024 256[1,3]<stdout>:node-2 NCCL WARN slow\n[1,0]<stdout>: float sum\n"
    assert untangle(text) == ["node-2 NCCL WARN slow", "1024 256float sum", ""]


def test_the_labels_of_srun_go():
    assert untangle(" 0: # size\n12: hot\n1024 256 float\n") == ["# size", "hot", "1024 256 float", ""]


def test_what_never_ends_is_kept():
    assert untangle("[1,0]<stdout>:half[1,1]<stdout>:whole\n") == ["whole", "", "half"]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.text(alphabet="abc -", min_size=1).filter(lambda t: t[0] != " "))),
    st.data(),
)
def test_every_order_of_pieces_gives_back_each_ranks_lines(lines, data):
    """Each rank writes its lines in two pieces; pieces of different ranks come in any order."""
    queues = {rank: [] for rank, _ in lines}
    for rank, text in lines:
        cut = data.draw(st.integers(0, len(text) - 1))
        while cut and text[cut] == " ":  # a blank after a tag belongs to the tag
            cut -= 1
        queues[rank] += [text[:cut], text[cut:] + "\n"]
    stream = ""
    while any(queues.values()):
        rank = data.draw(st.sampled_from([one for one, left in queues.items() if left]))
        stream += f"[1,{rank}]<stdout>:{queues[rank].pop(0)}"
    found = untangle(stream)
    for rank in queues:
        own = [text for one, text in lines if one == rank]
        rest = iter(found)
        assert all(text in rest for text in own)  # in their order
    assert sorted(one for one in found if one) == sorted(text for _, text in lines)
