package org.apache.kafka.common.utils;

/**
 * A timer that fires when it is told to, whatever the clock says. One that is made for no time at
 * all is due at once, until it is reset.
 */
public final class HeldTimer extends Timer {
  private boolean due;

  /** A timer that is due only where {@code timeoutMs} is 0. */
  public HeldTimer(Time time, long timeoutMs) {
    super(time, timeoutMs);
    due = timeoutMs == 0;
  }

  /** From now on it has expired. */
  public void fire() {
    due = true;
  }

  @Override
  public void update(long now) {}

  @Override
  public boolean isExpired() {
    return due;
  }

  @Override
  public boolean notExpired() {
    return !due;
  }

  @Override
  public long remainingMs() {
    return due ? 0 : 1;
  }

  @Override
  public void reset(long timeoutMs) {
    due = false;
  }

  @Override
  public void updateAndReset(long timeoutMs) {
    due = false;
  }
}
