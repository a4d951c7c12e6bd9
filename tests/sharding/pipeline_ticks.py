"""A pipeline second by second, to hold the simulator against: what lives is found anew at each moment."""

from __future__ import annotations

from collections.abc import Sequence

from xla_stalloc.sharding.stage import Phase, Pipeline, Task

_GRADIENTS = (Phase.BACKWARD, Phase.INPUT_GRADIENT)


def step(pipeline: Pipeline, schedule: Sequence[Sequence[Task]]) -> tuple[int, list[list[int]]]:
    """Seconds of the step and, per device, bytes held in each second; times and transfers take whole seconds."""
    last = len(pipeline.stages) - 1
    place = pipeline.device_of
    span: dict[Task, tuple[int, int]] = {}
    moves: dict[tuple[str, int, int], tuple[int, int]] = {}  # of what a stage sends ("x" on, "g" back), micro-batch
    queues: dict[tuple[int, int], list[tuple[str, int, int]]] = {}
    todo = [list(tasks) for tasks in schedule]
    now = 0

    def ended(task: Task) -> bool:
        return task in span and span[task][1] <= now

    def there(move: tuple[str, int, int]) -> bool:
        return move in moves and moves[move][1] <= now

    def can_run(task: Task) -> bool:
        phase, s, m = task
        if phase is Phase.FORWARD:
            return s == 0 or there(("x", s - 1, m))
        if phase is Phase.WEIGHT_GRADIENT:
            return ended(Task(Phase.INPUT_GRADIENT, s, m))
        if phase is Phase.OPTIMIZER:
            ends = (Phase.BACKWARD, Phase.WEIGHT_GRADIENT)
            return all(ended(t) for tasks in schedule for t in tasks if t.stage == s and t.phase in ends)
        return ended(Task(Phase.FORWARD, s, m)) and (s == last or there(("g", s + 1, m)))

    def sent(move: tuple[str, int, int]) -> int:
        kind, s, _ = move
        return pipeline.stages[s if kind == "x" else s - 1].output_bytes

    def to(move: tuple[str, int, int]) -> int:
        return place(move[1] + 1 if move[0] == "x" else move[1] - 1)

    while any(todo) or any(end > now for _, end in span.values()):
        for task, (_, end) in list(span.items()):
            if end == now:
                if task.phase is Phase.FORWARD and task.stage < last:
                    move = ("x", task.stage, task.micro_batch)
                elif task.phase in _GRADIENTS and task.stage > 0:
                    move = ("g", task.stage, task.micro_batch)
                else:
                    continue
                if to(move) == place(task.stage):
                    moves[move] = (now, now)
                else:
                    queues.setdefault((place(task.stage), to(move)), []).append(move)
        changed = True
        while changed:
            changed = False
            for (source, target), queue in queues.items():
                busy = any(
                    place(m[1]) == source and to(m) == target and start <= now < end
                    for m, (start, end) in moves.items()
                    if source != target
                )
                if queue and not busy:
                    seconds = pipeline.link.latency_seconds + sent(queue[0]) / pipeline.link.bytes_per_second
                    moves[queue.pop(0)] = (now, now + int(seconds))
                    changed = True
            for device, tasks in enumerate(todo):
                running = any(place(t.stage) == device and start <= now < end for t, (start, end) in span.items())
                if tasks and not running and can_run(tasks[0]):
                    program = pipeline.stages[tasks[0].stage].program(tasks[0].phase)
                    assert program is not None
                    span[tasks.pop(0)] = (now, now + int(program.seconds))
                    changed = True
        now += 1
        assert now < 10_000, "the schedule does not end"

    def held(device: int, t: int) -> int:
        total = 0

        def first(*tasks: Task) -> int:
            return min((span[x][0] for x in tasks if x in span), default=now)

        def over(*tasks: Task) -> int:
            return max((span[x][1] for x in tasks if x in span), default=now)

        for s, stage in enumerate(pipeline.stages):
            mine = [x for x in span if x.stage == s]
            if place(s) == device:
                total += stage.state_bytes
                backwards = [x for x in mine if x.phase in (Phase.BACKWARD, Phase.WEIGHT_GRADIENT)]
                optimizer = [x for x in mine if x.phase is Phase.OPTIMIZER]
                if backwards and first(*backwards) <= t < (over(*optimizer) if optimizer else now):
                    total += stage.gradient_bytes
                for x in mine:
                    program = stage.program(x.phase)
                    assert program is not None
                    total += program.temp_bytes if span[x][0] <= t < span[x][1] else 0
            for m in sorted({x.micro_batch for x in mine}):
                forward = Task(Phase.FORWARD, s, m)
                backward = next(x for x in mine if x.phase in _GRADIENTS and x.micro_batch == m)
                weights = Task(Phase.WEIGHT_GRADIENT, s, m)
                if place(s) == device:
                    incoming = stage.output_bytes if s < last else 0
                    if span[forward][0] <= t < over(backward):
                        total += stage.activation_bytes
                    if weights in span:
                        kept = min(stage.kept_bytes, stage.activation_bytes + incoming)
                        total += stage.deferred_bytes if span[backward][0] <= t < span[weights][1] else 0
                        total += kept if span[backward][1] <= t < span[weights][1] else 0
                for kind, made in (("x", forward), ("g", backward)):
                    move = (kind, s, m)
                    if move not in moves:
                        continue
                    reader = (
                        Task(Phase.FORWARD, s + 1, m)
                        if kind == "x"
                        else next(x for x in span if x.phase in _GRADIENTS and x[1:] == (s - 1, m))
                    )
                    if place(s) == to(move):
                        total += sent(move) if place(s) == device and span[made][0] <= t < span[reader][1] else 0
                        continue
                    if place(s) == device and span[made][0] <= t < moves[move][1]:
                        total += sent(move)
                    if to(move) == device and moves[move][0] <= t < span[reader][1]:
                        total += sent(move)
        return total

    return now, [[held(d, t) for t in range(now)] for d in range(len(pipeline.devices))]
