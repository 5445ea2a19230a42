package org.apache.kafka.controller;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;

/** The clock of a controller's sessions. It stands still until somebody moves it. */
final class SessionTime implements Time {
  private long nanoseconds = 1;

  void moves(long by) {
    nanoseconds += by;
  }

  @Override
  public long milliseconds() {
    return nanoseconds / 1_000_000;
  }

  @Override
  public long hiResClockMs() {
    return milliseconds();
  }

  @Override
  public long nanoseconds() {
    return nanoseconds;
  }

  @Override
  public Timer timer(long timeoutMs) {
    throw new IllegalStateException("a controller has no timer");
  }

  @Override
  public void sleep(long ms) {
    throw new IllegalStateException("nothing sleeps here");
  }

  @Override
  public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
    throw new IllegalStateException("nothing waits here");
  }
}
