"""A cluster of real processes: started, watched, paused, killed and stopped; and a client small enough to ask about it.

`Processes` (in `processes`) has one process of `python -m isr_broker` per broker, `KafkaProcesses` (in `kafka`) a JVM
per node of Apache Kafka. `Admin` (in `admin`) asks any of them through Kafka's protocol. `identity` says whose data a
folder holds, `changes` what the controller has decided so far. The command line, the tests and the fault runs all use
this, and nothing else starts brokers.
"""
