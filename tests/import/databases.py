"""Makes a database with the statements of a file.

usage: databases.py OUT STATEMENTS
"""

import sqlite3
import sys

with sqlite3.connect(sys.argv[1]) as database, open(sys.argv[2]) as statements:
    database.executescript(statements.read())
