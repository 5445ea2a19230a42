package insync.conform;

/** A step that is not taken, and what is known of why. */
public final class Refused extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Who says no. */
  private enum Who {
    /** The adapter, which judges it by itself. */
    ADAPTER,
    /** The system, which took another step. */
    ANOTHER,
    /** The adapter, which could not bring the system to try. */
    NOBODY,
    /** The system, in an answer of its own. */
    SYSTEM,
    /** The system, which threw what nobody expected. */
    FAILURE
  }

  private final Who who;

  private Refused(String why, Who who) {
    super(why, null, false, false);
    this.who = who;
  }

  /** The step is not taken: so the adapter judges. */
  public static Refused because(String why) {
    return new Refused(why, Who.ADAPTER);
  }

  /** The system took another step: what that led to is told beside. */
  public static Refused another(String why) {
    return new Refused(why, Who.ANOTHER);
  }

  /** The adapter cannot bring the system to try the step. */
  public static Refused cannot(String why) {
    return new Refused(why, Who.NOBODY);
  }

  /** The system was asked, and its answer is no. Then nothing that is told may have changed. */
  public static Refused answer(String why) {
    return new Refused(why, Who.SYSTEM);
  }

  /** The system was asked, and fails in a way that is no answer. It is told among what is enabled. */
  public static Refused failure(Throwable problem) {
    return new Refused("it throws " + problem, Who.FAILURE);
  }

  /** Whether nobody asked the system: the step is listed as not driven, and is no difference. */
  public boolean isUndriven() {
    return who == Who.NOBODY;
  }

  /** Whether the system took another step. */
  public boolean isAnother() {
    return who == Who.ANOTHER;
  }

  /** Whether the system itself said no. */
  public boolean isAnswer() {
    return who == Who.SYSTEM;
  }

  /** Whether the system failed. */
  public boolean isFailure() {
    return who == Who.FAILURE;
  }
}
