package org.apache.kafka.common.utils;

/**
 * A timer that fires when it is told to, whatever the clock says. One that is made for no time at
 * all is due at once, until it is reset. Where it is reset to no time it is due if the property
 * says so: the model fires it in a step of its own.
 */
public final class HeldTimer extends Timer {
  private static final boolean RESET_TO_NOTHING_IS_DUE =
      Boolean.getBoolean("insync.reset-to-nothing-is-due");

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
    due = RESET_TO_NOTHING_IS_DUE && timeoutMs == 0;
  }

  @Override
  public void updateAndReset(long timeoutMs) {
    due = false;
  }
}
