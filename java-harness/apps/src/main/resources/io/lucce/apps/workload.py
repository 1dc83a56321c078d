"""What a Python program does all day: objects, generators, dictionaries, strings, exceptions."""
import json
import re


class Task(object):
    def __init__(self, name, priority, work):
        self.name = name
        self.priority = priority
        self.work = work
        self.done = 0

    def step(self):
        if self.done >= self.work:
            raise StopIteration(self.name)
        self.done += 1
        return self.done

    def __cmp__(self, other):
        return cmp((self.priority, self.name), (other.priority, other.name))


class Urgent(Task):
    def step(self):
        result = super(Urgent, self).step()
        if self.done % 7 == 0:
            self.priority += 1
        return result


class Scheduler(object):
    def __init__(self):
        self.tasks = []
        self.log = {}

    def add(self, task):
        self.tasks.append(task)

    def run(self):
        steps = 0
        while self.tasks:
            self.tasks.sort()
            for task in list(self.tasks[:3]):
                try:
                    steps += task.step()
                except StopIteration as end:
                    self.log[str(end)] = steps
                    self.tasks.remove(task)
        return steps


def schedule(n):
    scheduler = Scheduler()
    for i in range(n):
        kind = Urgent if i % 3 == 0 else Task
        scheduler.add(kind("task%d" % i, i % 5, 10 + i % 17))
    return scheduler.run() + len(scheduler.log)


def queens(n):
    def place(row, columns, left, right):
        if row == n:
            yield 1
            return
        for column in range(n):
            if column not in columns and row + column not in left and row - column not in right:
                for solution in place(row + 1, columns | set([column]), left | set([row + column]), right | set([row - column])):
                    yield solution
    return sum(place(0, frozenset(), frozenset(), frozenset()))


WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")


def words(text, times):
    counts = {}
    for _ in range(times):
        for match in WORD.finditer(text):
            word = match.group().lower()
            counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:20]


def documents(n):
    data = [{"id": i, "name": u"n\u00e4me %d" % i, "tags": ["t%d" % (i % k) for k in range(1, 6)], "nested": {"x": i * 1.5}} for i in range(n)]
    text = json.dumps(data, sort_keys=True)
    return len(text) + sum(len(item["tags"]) for item in json.loads(text))


def failing(depth):
    if depth == 0:
        raise ValueError("bottom")
    try:
        return failing(depth - 1)
    except ValueError:
        if depth % 3 == 0:
            raise KeyError(depth)
        raise
    except KeyError as e:
        return e.args[0]


def matrix(n):
    a = [[(i * j) % 7 for j in range(n)] for i in range(n)]
    b = [[(i + j) % 5 for j in range(n)] for i in range(n)]
    return sum(sum(sum(x * y for x, y in zip(row, column)) for column in zip(*b)) for row in a)


def run(size):
    results = []
    results.append(schedule(20 * size))
    results.append(queens(7))
    results.append(words(__doc__ + " the quick brown fox doesn't jump over the lazy dog", 20 * size))
    results.append(documents(20 * size))
    results.append(sum(failing(1 + i % 20) if i % 20 > 2 else 0 for i in range(60 * size)))
    results.append(matrix(4 + 3 * size))
    results.append(hash("".join("%s:%05d;" % (chr(97 + i % 26), i) for i in range(100 * size))))
    return repr(results)
