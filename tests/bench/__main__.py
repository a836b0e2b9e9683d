"""`make bench`: every benchmark, each figure beside what it is measured against."""

from __future__ import annotations

from tests.bench import batch, compressor, conversation, engine, long_session, parsers, sandboxes, startup

if __name__ == "__main__":
    startup.main()
    conversation.main()
    long_session.main()
    parsers.main()
    engine.main()
    sandboxes.main()
    compressor.main()
    batch.main()
