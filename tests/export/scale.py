#!/usr/bin/env python3
"""Answers the questions of docs/scale.md about the tables in a folder, as JSON: for each heading the rows of its query.

    scale.py FOLDER duckdb|spark
"""
import json
import os
import pathlib
import re
import sys

tools = os.environ.get('GPUTRAIL_TEST_TOOLS') or os.path.join(
    os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'gputrail-tests')
folder, engine = sys.argv[1:]
sys.path.insert(0, os.path.join(tools, engine))
TABLES = 'work', 'slices'
page = pathlib.Path(__file__).resolve().parents[2] / 'docs/scale.md'


def with_duckdb():
    import duckdb
    connection = duckdb.connect()
    for table in TABLES:
        connection.execute(f"create view {table} as select * from "
                           f"read_parquet('{folder}/{table}/*/*.parquet', hive_partitioning = true)")
    return lambda sql: connection.execute(sql).fetchall()


def with_spark():
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.master('local[2]').config('spark.ui.enabled', 'false') \
        .config('spark.sql.shuffle.partitions', '4').config('spark.driver.bindAddress', '127.0.0.1').getOrCreate()
    spark.sparkContext.setLogLevel('ERROR')
    for table in TABLES:
        spark.read.parquet(f'{folder}/{table}').createOrReplaceTempView(table)
    return lambda sql: [list(row) for row in spark.sql(sql).collect()]


ask = {'duckdb': with_duckdb, 'spark': with_spark}[engine]()
answers = {heading: ask(sql) for heading, sql in
           re.findall(r'^## ([^\n]*)\n(?:(?!^## ).)*?^```sql\n(.*?)^```$', page.read_text(), re.M | re.S)}
print(json.dumps(answers, default=float))
