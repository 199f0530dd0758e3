"""What each bench prints becomes its sections of the page."""

import re
from pathlib import Path
from typing import Any

import pytest
from bench import __main__ as every
from bench.figures import PAGE, publish
from bench.figures.benches import BENCHES
from bench.figures.document import names
from bench.figures.provenance import Provenance, here_and_now

RUN = Provenance("2026-11-22", "2 cores, 24 GiB", "abcdef1")
DEMO = {
    "ready_s": 17.2,
    "produced_records": 305_940,
    "landed_rows": 305_940,
    "consumers": {"min": 1, "mean": 4.0, "max": 5},
    "moves": 17,
    "pause_s": {"p50": 0.1, "p99": 0.15},
    "row_age_s": {"clicks": {"p50": 3.0, "p99": 6.0}, "orders": {"p50": 3.2, "p99": 8.5}},
}
GREEDY = {
    "bytes, ours / greedy": 0.4,
    "bytes at its balance, ours / greedy": 0.1,
    "largest use": {"disk": 1.3},
}
PHASE = {
    "disturbed": 31,
    "changed_hands": 32,
    "pauses": 12,
    "paused_s": 1.04,
    "handed_over_s": 0.54,
    "longest_gap_s": 0.14,
}
COST = {
    "cores": 0.17,
    "passes_per_s": 1.0,
    "cpu_ms_per_pass": 168,
    "rss_mb": 83,
    "broker_cores": 0.26,
}
PLAYED = {
    "sent": 43_620,
    "seconds": 240,
    "peak": 350.0,
    "speed": 2.5,
    "groups": [{"group": "binwright", "within the SLA, %": 99.1, "replica-minutes": 12.5}],
}
AT_PRICE = {"consumers": 15.4, "crossing_per_cent": 65.9, "moved_per_cent": 7.7}
PRINTED: dict[str, Any] = {
    "scaling": {
        "w1": PLAYED,
        "w2": PLAYED,
        "skew": {"rows": [{"assignor": "range", "largest load / mean": 2.29}]},
    },
    "demo": {"cores": 2, "first_run": DEMO, "flood": {**DEMO, "landed_mb_per_s": 5.4}},
    "landing": {
        "live": [{"side": "binwright", "age p99, s": 2.91}],
        "growth": [{"side": "after 100 batches", "ratio": 1.0}],
    },
    "handover": {
        "cores": 2,
        "kip-848": {"bounce": PHASE, "growth": PHASE},
        "binwright": {
            "bounce": PHASE,
            "growth": PHASE,
            "moves": 48,
            "pause_per_move_ms": {"p50": 18.0, "p99": 113.0},
        },
        "ours_to_best": {"bounce_paused_s": 1.0},
    },
    "deaths": {
        "cores": 2,
        "consumer": {"times": 2, "p50": 0.5, "p99": 1.1, "all_s": [0.5, 1.07]},
        "consumer_and_leader": {"times": 0, "all_s": []},
    },
    "split": {
        side: {
            "consumers": consumers,
            "highest_lag_s": 12.0,
            "mean_lag_of_thirds_s": [1.0, 2.0, lag],
            "lag_at_the_end_s": lag,
            "audit_clean": True,
        }
        for side, consumers, lag in (("split", 4, 3.5), ("alone", 1, 60.5))
    },
    "catch-up": {
        "one": {"within_target_s": 160.5, "consumers": 1},
        "step": {"within_target_s": 20.5, "behind_at_most_s": 7.5, "consumers": 3},
    },
    "prediction": {
        "compared": [
            {
                "load": "a walk",
                "start_up_s": 60.0,
                "kinds": [
                    {"kind": "measured", "default": [6227.6, 99.553], "gain": None},
                    {"kind": "trend", "default": [6349.2, 98.972], "gain": -1.68},
                    {"kind": "seer", "default": [6516.1, 99.881], "gain": -1e-14},
                ],
            }
        ]
    },
    "sweep": {
        "points": 24,
        "cpu_s_in_one_process": 96.4,
        "runs": [
            {"executors": 1, "took_s": 100.2, "others": 0.1},
            {"executors": 2, "took_s": 60.1, "others": 0.2},
        ],
        "of_linear": 0.834,
        "same_numbers": True,
    },
    "simulation": {
        "live": {
            "live": {"mean": 4.03, "plans": 9},
            "recording": {"mean": 4.03, "plans": 9, "equal": 0.994},
            "stream": {
                "mean": 3.98,
                "plans": 9,
                "equal": 0.873,
                "seconds_by_cause": {"another plan": 22},
            },
        },
        "week": {
            "took_s": 50.2,
            "cpu_s": 98.1,
            "policies": [
                {
                    "policy": "optimum",
                    "replica_minutes": 140_000.4,
                    "consumers_mean": 14.1,
                    "consumers_max": 17,
                    "moves": None,
                    "lag_max_bytes": None,
                    "p99_s": None,
                    "within_sla": None,
                }
            ],
        },
    },
    "timings": {
        "tables": {
            "timings": [{"Δt": 2, "event": "measurement to plan", "p50, s": 0.55}],
            "timings-capacity": [],
        },
    },
    "controller": [
        {
            "group": "1,000 partitions",
            "in all": 0.012,
            "of it decoding": 0.004,
            "of measurements decoding": 0.001,
            "MB": 41.2,
        }
    ],
    "groups": [{"groups": 100, "core": 0.09, "MB": 71.0}],
    "scaled-groups": [{"ends": "monitor", "groups": 500, "core": 0.06, "MB": 63.0}],
    "takeover": {"records written": 348_202, "acts after s": 2.1},
    "packing": {
        "sticky": {"32": {"p50_ms": 0.5, "first_ms": 1.0}, "growth": {}, "bars_ms": {}},
        "mwf": {"32": {"p50_ms": 0.1, "first_ms": 0.2}, "growth": {}, "bars_ms": {}},
        "sticky_above_exact": {
            "price 2.0, delta 5": {"mean_gap_per_cent": 0.5, "most_per_cent": 3.1, "decisions": 20}
        },
    },
    "brokers": {
        "large": {
            "five new brokers": {
                **dict.fromkeys(("s", "CPU-s", "MB", "bytes moved, %", "moves"), 1.0),
                "constraints broken": 0,
                "largest before": {"disk": 1.5},
                "largest use": {"disk": 1.05},
            }
        },
        "optimum": {"cases": 200, "bytes above the optimum, mean, %": 0.4},
        "greedy": {
            "uneven": {
                "ours": {"largest use": {"disk": 1.05}},
                "all goals": GREEDY,
                "goals of loads": GREEDY,
            }
        },
    },
    "zones": {
        "recorded": {"1 of 3 zones, price 0": AT_PRICE},
        "walk": {"2 of 3 zones, price 3": {**AT_PRICE, "crossing_per_cent": 2.1}},
        "times": {
            "1000": {
                "off_cpu_ms": 8.1,
                "on_cpu_ms": 12.2,
                "ratio": 1.51,
                "crossing_off_per_cent": 66.6,
                "crossing_on_per_cent": 4.0,
            }
        },
    },
    "monitor": {
        "real_broker": {
            "1000": {"binwright": COST, "java_admin": "left out", "broker_alone_cores": 0.03}
        },
        "frames": {"100000": {**COST, "interval_s": 5.0}},
    },
    "moves": {
        "leaders": {
            "100": {
                "10": {
                    "leaders_moved": 96,
                    "longest_send_s": 0.3,
                    "KafkaIntake": {"median_s": 0.1, "p99_s": 0.2, "longest_s": 0.4},
                    "AIOKafkaConsumer": {"median_s": 0.1, "p99_s": 0.2, "longest_s": 0.4},
                },
                "lost": 0,
            }
        },
        "killed": {"kills": 20, "left": 0, "lost": 0},
    },
    "kubernetes": {
        "deployments_50": {"created_s": 0.32, "running_s": 2.7},
        "idle_50": {"cores": 0.0003, "rss_mb": 117.0},
        "slot_to_ready": {"first_s": 9.5, "second_s": 4.1, "third_s": 3.6},
    },
}


def shown(tmp_path: Path, bench: str) -> str:
    page = tmp_path / "figures.md"
    publish(page, bench, PRINTED[bench], RUN)
    return page.read_text()


@pytest.mark.parametrize("bench", BENCHES)
def test_each_section_of_a_bench_names_its_run(tmp_path: Path, bench: str) -> None:
    page = shown(tmp_path, bench)
    found = names(page)
    assert found
    assert set(found) <= set(BENCHES[bench].titles)
    line = f"*`{BENCHES[bench].command}`, 2026-11-22: 2 cores, 24 GiB, abcdef1*"
    assert page.count(line) == len(found)


def test_a_run_of_some_scenarios_refreshes_their_sections_only(tmp_path: Path) -> None:
    page = tmp_path / "figures.md"
    publish(page, "landing", {"backlog": [{"side": "a", "MB/s": 1.0}]}, RUN)
    publish(page, "landing", {"live": [{"side": "b", "MB/s": 2.0}]}, RUN)
    publish(page, "landing", {"live": [{"side": "c", "MB/s": 3.0}]}, RUN)
    assert names(page.read_text()) == ["landing-backlog", "landing-live"]
    assert "| a | 1 |" in page.read_text()
    assert "| b |" not in page.read_text()
    assert "| c | 3 |" in page.read_text()


def test_a_client_that_was_left_out_has_no_row(tmp_path: Path) -> None:
    page = shown(tmp_path, "monitor")
    assert "java" not in page
    assert "| 1,000 | binwright | 1 | 0.17 | 168 | 83 | 0.26 |" in page
    assert "| 100,000 | binwright, brokers of frames |" in page


def test_make_bench_runs_every_bench_of_the_page() -> None:
    assert set(every.BENCHES) == set(BENCHES)


def test_no_two_benches_fill_one_section() -> None:
    titles = [name for bench in BENCHES.values() for name in bench.titles]
    assert len(titles) == len(set(titles))


def test_the_page_of_the_repository_has_a_section_for_each_that_a_bench_may_fill() -> None:
    wanted = {name for bench in BENCHES.values() for name in bench.titles}
    assert wanted <= set(names(PAGE.read_text()))


def test_the_machine_is_described() -> None:
    run = here_and_now()
    assert "cores, " in run.machine
    assert run.machine.endswith(" GiB")
    assert re.fullmatch(r"[0-9a-f]{7,40}(-dirty)?|[0-9.]+", run.version)


def test_a_bench_that_fails_is_named_and_ends_no_other(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert every.measured("no-such-bench", tmp_path / "figures.md") is None
    assert "bench: no-such-bench failed: " in capfd.readouterr().err
