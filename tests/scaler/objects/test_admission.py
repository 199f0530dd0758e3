"""ScaledGroups beyond a limit of their namespace are not scaled; older ones are."""

from binwright.kubernetes.limits import LimitSettings
from binwright.scaler.objects.admission import Admission, Size

LIMITS = LimitSettings(groups=3, topics=4, partitions=10)


def test_what_fits_is_scaled_and_what_does_not_is_named() -> None:
    admission = Admission(LIMITS)
    assert not admission.refusal("a", Size(1, 6))
    assert admission.refusal("a", Size(1, 5)) == (
        "namespace a may have 10 partitions (kubernetes.limits.partitions of the settings), and "
        "older objects have them; this one needs 5"
    )
    assert "4 topics" in admission.refusal("a", Size(4))
    assert not admission.refusal("a", Size(1, 4))
    assert not admission.refusal("a", Size(1))
    assert "3 groups" in admission.refusal("a", Size(0))


def test_a_full_namespace_takes_nothing_from_another() -> None:
    admission = Admission(LIMITS)
    assert admission.refusal("a", Size(1, 11))
    assert not admission.refusal("b", Size(4, 10))


def test_metrics_have_what_is_over() -> None:
    admission = Admission(LIMITS)
    admission.refusal("a", Size(1, 11))
    admission.refusal("a", Size(1, 1))
    found = {sample.labels["limit"]: sample.value for sample in admission.samples()}
    assert found == {"groups": 0, "topics": 0, "partitions": 11}
