"""Kafka's wire protocol: frames, requests by API, consumer groups, fetch sessions, requests between brokers."""
