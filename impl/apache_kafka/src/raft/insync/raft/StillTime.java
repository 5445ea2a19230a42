package insync.raft;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.HeldTimer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;

/** A clock that stands still until somebody moves it. Its timers fire when they are told to. */
public final class StillTime implements Time {
  /** The time when it begins, in ms. */
  public static final long NOW = 1_000_000;

  private long now = NOW;

  /** So many ms go by. */
  public void moves(long by) {
    now += by;
  }

  @Override
  public long milliseconds() {
    return now;
  }

  @Override
  public long hiResClockMs() {
    return now;
  }

  @Override
  public long nanoseconds() {
    return now * 1_000_000;
  }

  @Override
  public Timer timer(long timeoutMs) {
    return new HeldTimer(this, timeoutMs);
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
