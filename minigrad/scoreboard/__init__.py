"""`python -m minigrad`: the programs this project exists for, run, judged and counted.

    programs    the seeds' programs and other public reports, one text for minigrad and torch, with their right values
    nestings    a slice of the composition matrix: nestings x regions x bodies, each against its plain program
    judge       run a program, compare it, count recomputations, what is kept, host copies
    report      the tables, as text or JSON, and the command line

Nothing here is imported by the rest of minigrad.
"""
