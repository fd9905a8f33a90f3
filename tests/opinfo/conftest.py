"""What came of it all, in one line at the end of the run."""

from collections import Counter


def pytest_terminal_summary(terminalreporter):
    found = [value for report in terminalreporter.getreports("passed") for name, value in report.user_properties if name == "opinfo"]
    if found:
        entries = {entry for entry, *_ in found}
        total = Counter(passed=sum(f[3] for f in found), deviated=sum(f[4] for f in found))
        terminalreporter.write_line(f"op_db: {len(entries)} entries, {len(found)} questions, {total['passed']} answers as torch's, "
                                    f"{total['deviated']} as verdicts.toml says")
