"""Gradient buckets."""

from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.workloads.buckets import Bucket, default_bucket_size, fill_buckets, padded

tensor_sizes = st.lists(st.integers(1, 50), max_size=20)


def test_default_grows_with_the_replicas():
    """max(40 million, 1 million x replicas) (Megatron-LM, DistributedDataParallel)."""
    assert default_bucket_size(16) == 40_000_000
    assert default_bucket_size(128) == 128_000_000


def test_the_tensor_that_brings_a_bucket_to_its_size_closes_it():
    assert fill_buckets([3, 4, 2, 5], 5) == (Bucket(0, 2, 7), Bucket(2, 4, 7))


def test_what_is_left_is_the_last_bucket():
    assert fill_buckets([6, 1], 5) == (Bucket(0, 1, 6), Bucket(1, 2, 1))


def test_one_bucket_without_a_limit():
    assert fill_buckets([6, 1], None) == (Bucket(0, 2, 7),)


def test_a_tensor_that_wants_to_be_alone_is():
    """The tied embedding with the distributed optimizer, so that first and last stage cut it alike."""
    assert fill_buckets([1, 2, 3], None, [False, True, False]) == (Bucket(0, 1, 1), Bucket(1, 2, 2), Bucket(2, 3, 3))


@given(tensor_sizes, st.one_of(st.none(), st.integers(1, 100)))
def test_every_tensor_is_in_one_bucket(sizes, limit):
    buckets = fill_buckets(sizes, limit)
    assert [k for bucket in buckets for k in range(bucket.first, bucket.stop)] == list(range(len(sizes)))
    assert all(bucket.parameters == sum(sizes[bucket.first : bucket.stop]) for bucket in buckets)
    assert all(bucket.parameters >= (limit or 0) for bucket in buckets[:-1])


@given(st.integers(1, 10**6), st.integers(1, 100))
def test_a_padded_bucket_can_be_cut_in_equal_aligned_shards(parameters, replicas):
    size = padded(parameters, replicas)
    assert size % replicas == size % 128 == 0
    assert 0 <= size - parameters < replicas * 128
