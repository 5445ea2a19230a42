package org.apache.kafka.raft;

import java.util.ArrayDeque;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** The queue of what has arrived at a client. Nobody waits at it. */
final class HeldQueue implements RaftMessageQueue {
  private final ArrayDeque<QueueEntry> entries = new ArrayDeque<>();

  private record Entry(RaftMessage message, CompletableFuture<RaftMessage> future)
      implements QueueEntry {}

  @Override
  public Optional<QueueEntry> poll(long timeoutMs) {
    return Optional.ofNullable(entries.poll());
  }

  @Override
  public CompletionStage<RaftMessage> add(RaftMessage message) {
    Entry entry = new Entry(message, new CompletableFuture<>());
    entries.add(entry);
    return entry.future();
  }

  @Override
  public boolean isEmpty() {
    return entries.isEmpty();
  }

  @Override
  public void wakeup() {}
}
