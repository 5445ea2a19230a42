"""A cluster of real processes: started, watched, paused, killed and stopped; and a client small enough to ask about it.

The command line, the tests and the fault runs all use this, and nothing else starts brokers.

Reading order: `processes` (one process of `python -m isr_broker` per broker, and what all systems share), `kafka` (a
JVM per node of Apache Kafka), `system_description` (brokers that a file says how to start), `admin` (asks any of
them through Kafka's protocol), `identity` (whose data a folder holds), `ports` (their addresses), `changes` and
`kafka_metadata` (what the controller has decided so far).
"""
