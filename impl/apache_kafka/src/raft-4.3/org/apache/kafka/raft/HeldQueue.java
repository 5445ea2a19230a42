package org.apache.kafka.raft;

import java.util.ArrayDeque;

/** The queue of what has arrived at a client, as it was until Kafka 4.3. Nobody waits at it. */
final class HeldQueue implements RaftMessageQueue {
  private final ArrayDeque<RaftMessage> messages = new ArrayDeque<>();

  @Override
  public RaftMessage poll(long timeoutMs) {
    return messages.poll();
  }

  @Override
  public void add(RaftMessage message) {
    messages.add(message);
  }

  @Override
  public boolean isEmpty() {
    return messages.isEmpty();
  }

  @Override
  public void wakeup() {}
}
