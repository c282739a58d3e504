#!/usr/bin/env python3
"""Prints the rows of a query over the tables of a folder that `gputrail convert -o FOLDER/` made, as JSON.

    duckdb_rows.py FOLDER SQL
"""
import json
import os
import sys

tools = os.environ.get('GPUTRAIL_TEST_TOOLS') or os.path.join(
    os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'gputrail-tests')
sys.path.insert(0, os.path.join(tools, 'duckdb'))

import duckdb

folder, sql = sys.argv[1:]
connection = duckdb.connect()
for table in sorted(os.listdir(folder)):
    if os.path.isdir(os.path.join(folder, table)) and not table.startswith('.'):
        files = os.path.join(folder, table, '*', '*.parquet').replace("'", "''")
        connection.execute(f"create view {table} as select * from read_parquet('{files}', hive_partitioning = true)")
print(json.dumps(connection.execute(sql).fetchall()))
