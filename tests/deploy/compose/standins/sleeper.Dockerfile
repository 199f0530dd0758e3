# For tests only: a consumer that does nothing until SIGTERM, and as slot 3 fails at once.
FROM python:3.11-slim-bookworm
ENTRYPOINT ["python3", "-c", "import signal, sys; sys.argv[2] == '3' and sys.exit('no'); signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); signal.pause()"]
