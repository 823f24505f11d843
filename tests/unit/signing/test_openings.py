"""The sample of a batch that its signer has to open."""

from hypothesis import given
from hypothesis import strategies as st

from appliance.domain.ids import RequestBatchId, RequestId
from appliance.domain.requests.backend_batch import to_be_opened
from appliance.domain.vocab import Openings


def requests(count: int) -> list[RequestId]:
    """As many requests of a batch."""
    return [RequestId(number) for number in range(1, count + 1)]


@given(st.integers(1, 1000), st.uuids())
def test_sample_is_a_tenth_within_bounds(count: int, batch: object) -> None:
    """Three at least, where there are as many, and twenty at most."""
    whole = requests(count)
    sample = to_be_opened(RequestBatchId(str(batch)), Openings.SAMPLE, whole)

    assert sample <= set(whole)
    assert len(sample) == min(count, 20, max(3, -(-count // 10)))


def test_sample_is_the_same_each_time_and_another_for_another_batch() -> None:
    """It follows from the batch alone, in whatever order its requests come."""
    whole = requests(200)
    one, other = RequestBatchId("a"), RequestBatchId("b")
    sample = to_be_opened(one, Openings.SAMPLE, whole)

    assert to_be_opened(one, Openings.SAMPLE, whole[::-1]) == sample
    assert to_be_opened(other, Openings.SAMPLE, whole) != sample


def test_all_and_none() -> None:
    """As the integrator chose."""
    whole, batch = requests(5), RequestBatchId("a")

    assert to_be_opened(batch, Openings.ALL, whole) == set(whole)
    assert to_be_opened(batch, Openings.NONE, whole) == set()
