package org.apache.kafka.queue;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.utils.Time;

/**
 * Kafka's event queue without its thread. Events are run in the same order, when they are told to.
 * What is byTag waits until it is told that its time has come.
 */
abstract class HeldEvents implements EventQueue {
  private final Time time;
  private final ArrayDeque<Event> events = new ArrayDeque<>();
  private final Map<String, Event> byTag = new HashMap<>();

  HeldEvents(Time time) {
    this.time = time;
  }

  /** Run all that waits, and what that adds; whether there was anything. */
  public boolean runs() {
    boolean any = !events.isEmpty();
    for (Event event = events.poll(); event != null; event = events.poll()) {
      run(event);
    }
    return any;
  }

  /** The time of what is byTag under this name has come; whether anything was. */
  public boolean isTime(String tag) {
    Event event = byTag.remove(tag);
    return event != null && events.add(event);
  }

  private static void run(Event event) {
    try {
      event.run();
    } catch (Throwable problem) {
      event.handleException(problem);
    }
  }

  void hold(EventInsertionType type, String tag, Event event) {
    switch (type) {
      case PREPEND -> events.addFirst(event);
      case APPEND -> events.addLast(event);
      case DEFERRED -> byTag.put(tag, event);
    }
  }

  /** Its clock. */
  public Time time() {
    return time;
  }

  @Override
  public void cancelDeferred(String tag) {
    byTag.remove(tag);
  }

  @Override
  public void beginShutdown(String source) {}

  @Override
  public int size() {
    return events.size();
  }

  @Override
  public void close() {}
}
