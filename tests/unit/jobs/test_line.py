"""Who goes next, and who waits for whom."""

import heapq
from random import Random

from common.names import JobId
from coordinator.jobs.line import Dependencies, Line, Rank


def _rank(priority: int, *, may_wait: bool = True) -> Rank:
    return Rank(may_wait=may_wait, priority=priority)


def _all(line: Line) -> list[int]:
    order = []
    while (job := line.pop()) is not None:
        order.append(int(job))
    return order


def test_the_more_important_goes_first_then_the_older_and_locks_before_all() -> None:
    line = Line()
    line.put(JobId(3), _rank(0))
    line.put(JobId(1), _rank(0))
    line.put(JobId(4), _rank(-5))
    line.put(JobId(5), _rank(19, may_wait=False))
    assert [line.before(JobId(n)) for n in (5, 4, 1, 3)] == [0, 1, 2, 3]
    assert _all(line) == [5, 4, 1, 3]


def test_a_job_that_was_moved_back_goes_when_its_new_turn_comes() -> None:
    line = Line()
    for number in (1, 2):
        line.put(JobId(number), _rank(0))
    line.put(JobId(1), _rank(10))
    assert _all(line) == [2, 1]


def test_a_job_that_left_does_not_come_up() -> None:
    line = Line()
    for number in (1, 2):
        line.put(JobId(number), _rank(0))
    line.leave(JobId(1))
    assert JobId(1) not in line
    assert _all(line) == [2]


def test_a_line_is_the_sorted_list_of_what_is_in_it() -> None:
    for seed in range(50):
        random, line, model = Random(seed), Line(), dict[int, Rank]()
        for _ in range(100):
            number = random.randint(1, 9)
            if random.random() < 0.3:
                line.leave(JobId(number))
                model.pop(number, None)
            elif random.random() < 0.2:
                popped = line.pop()
                best = min(((rank, job) for job, rank in model.items()), default=None)
                assert popped == (best and best[1])
                model.pop(popped or 0, None)
            else:
                model[number] = _rank(random.randint(-2, 2), may_wait=random.random() < 0.8)
                line.put(JobId(number), model[number])
        expected = heapq.nsmallest(9, ((rank, job) for job, rank in model.items()))
        assert _all(line) == [job for _, job in expected], f"seed {seed}"


def test_the_end_of_the_last_one_makes_a_job_ready_once() -> None:
    book = Dependencies()
    assert book.add(JobId(9), [JobId(1), JobId(2), JobId(1)])
    assert not book.add(JobId(8), [])
    assert book.of(JobId(9)) == [1, 2]
    assert book.ended(JobId(1)) == []
    assert book.ended(JobId(1)) == []
    assert book.ended(JobId(2)) == [9]
    assert book.of(JobId(9)) == []


def test_a_job_that_ended_while_it_waited_is_not_made_ready() -> None:
    book = Dependencies()
    book.add(JobId(9), [JobId(1)])
    assert book.ended(JobId(9)) == []
    assert book.ended(JobId(1)) == []
