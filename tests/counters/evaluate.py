"""Evaluates counter definitions independently of gputrail, on made-up values, and prints one JSON object per metric.

    evaluate.py v1 metrics.xml | sdk counter_defs.yaml | gpa PublicCounterDefinitions.txt

A basic counter has 32 instances; the value of each is made from the CRC of its name and the number of the instance.
"""
import ast
import json
import os
import re
import sys
import zlib

INSTANCES = 32
PROPERTIES = {
    'CU_NUM': 104, 'cu_count': 104, 'SIMD_NUM': 416, 'NUM_SIMDS': 416, 'simd_count': 416, 'simd_per_cu': 4, 'SE_NUM': 8,
    'NUM_SHADER_ENGINES': 8, 'array_count': 16, 'simd_arrays_per_engine': 2, 'XCC_NUM': 2, 'num_xcc': 2, 'MAX_WAVE_SIZE': 64,
    'wave_front_size': 64,
}
REDUCTIONS = {'sum': sum, 'min': min, 'max': max, 'avr': lambda values: sum(values) / len(values)}


def made_up(name):
    return [float(zlib.crc32(f'{name}/{instance}'.encode()) % 1000) for instance in range(INSTANCES)]


class Architecture:
    """Names of basic counters, and expressions of metrics as Python's syntax trees."""

    def __init__(self, alone_is_sum):
        self.basic, self.metrics, self.alone_is_sum = set(), {}, alone_is_sum

    def define(self, name, expression):
        self.basic.discard(name)
        self.metrics.pop(name, None)
        if expression is None:
            self.basic.add(name)
        else:
            self.metrics[name] = ast.parse(expression.strip(), mode='eval').body

    def value(self, name, reduced=False):
        if name in self.metrics:
            return self.of(self.metrics[name])
        if name in self.basic:
            values = made_up(name)
            return sum(values) if self.alone_is_sum and not reduced else values
        return float(PROPERTIES[name])

    def of(self, node, reduced=False):
        if isinstance(node, ast.Constant):
            return float(node.value)
        if isinstance(node, ast.Name):
            return self.value(node.id, reduced)
        if isinstance(node, ast.BinOp):
            left, right = self.of(node.left), self.of(node.right)
            work = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
                    ast.Div: lambda a, b: a / b}[type(node.op)]
            if isinstance(left, list) or isinstance(right, list):
                left = left if isinstance(left, list) else [left] * INSTANCES
                right = right if isinstance(right, list) else [right] * INSTANCES
                return [work(a, b) for a, b in zip(left, right)]
            return work(left, right)
        if isinstance(node, ast.Call):
            if node.func.id == 'accumulate':
                return self.of(node.args[0], True)
            values = self.of(node.args[0], True)
            values = values if isinstance(values, list) else [values]
            if node.func.id == 'reduce':
                return REDUCTIONS[node.args[1].id](values)
            return REDUCTIONS[node.func.id](values[:int(node.args[1].value)])
        raise ValueError(ast.dump(node))

    def show(self, architecture):
        for name in sorted(self.metrics):
            try:
                value = self.of(self.metrics[name])
                value = sum(value) if isinstance(value, list) else value
            except ZeroDivisionError:
                value = None
            print(json.dumps({'architecture': architecture, 'metric': name, 'value': value}))


def v1(path):
    def text_of(path):
        text = open(path).read()
        folder = os.path.dirname(path)
        return re.sub(r'^#include "(.*)"', lambda found: text_of(os.path.join(folder, found[1])), text, flags=re.M)

    text = re.sub(r'^\s*#.*$', '', text_of(path), flags=re.M)
    sections, bases, section = {}, {}, None
    for closing, name, rest in re.findall(r'<(/?)(\w+)((?:"[^"]*"|[^">])*)>', text):
        if closing:
            continue
        values = {key: quoted or plain for key, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', rest)}
        if name == 'metric':
            sections[section].append((values['name'], values.get('expr')))
        else:
            section = name
            sections.setdefault(name, [])
            if 'base' in values:
                bases.setdefault(name, []).append(values['base'])

    def with_bases(name, seen):
        if name in seen:
            return []
        seen.add(name)
        before = [each for base in bases.get(name, []) for each in with_bases(base, seen)]
        return before + sections[name]

    for name in sections:
        if name != 'global' and not name.endswith('_expr'):
            made = Architecture(True)
            for metric, expression in sections['global'] + with_bases(name, set()):
                made.define(metric, expression)
            made.show(name)


def sdk(path):
    import yaml
    architectures = {}
    loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
    for counter in yaml.load(open(path), loader)['rocprofiler-sdk']['counters']:
        for definition in counter['definitions']:
            for name in definition['architectures']:
                made = architectures.setdefault(name, Architecture(False))
                made.define(counter['name'], definition.get('expression'))
    for name, made in architectures.items():
        made.show(name)


def gpa(path):
    counters, name, section = [], None, None
    for line in open(path):
        line = line.strip()
        if not line or line.startswith(';') or re.match('(desc|type|usage)=', line):
            continue
        if line.startswith('name='):
            name = line[5:]
        elif line.startswith('['):
            section, counters = line[1:-1], []
        elif line.startswith('comp='):
            stack = []
            for item in line[5:].split(','):
                both = {'+': lambda a, b: a + b, '-': lambda a, b: a - b, '*': lambda a, b: a * b,
                        '/': lambda a, b: a / b, 'min': min, 'max': max}.get(item)
                if both:
                    right = stack.pop()
                    stack.append(both(stack.pop(), right))
                elif '..' in item:
                    start, end = map(int, item.split('..'))
                    stack += [sum(made_up(counter)) for counter in counters[start:end + 1]]
                elif item.startswith('('):
                    stack.append(float(item[1:-1]))
                elif item.isdigit():
                    stack.append(sum(made_up(counters[int(item)])))
                elif item in PROPERTIES:
                    stack.append(float(PROPERTIES[item]))
                else:
                    function, count = re.fullmatch(r'([a-z]+)(\d+)', item).groups()
                    taken = stack[-int(count):]
                    stack[-int(count):] = [REDUCTIONS[function](taken)]
            print(json.dumps({'architecture': section, 'metric': name, 'value': stack[0]}))
        elif '*' in line:
            pattern, start, end = re.fullmatch(r'(.*)\[(\d+)\.\.(\d+)\]', line).groups()
            counters += [pattern.replace('*', str(number), 1) for number in range(int(start), int(end) + 1)]
        else:
            counters.append(line)


{'v1': v1, 'sdk': sdk, 'gpa': gpa}[sys.argv[1]](sys.argv[2])
