package insync.conform;

/**
 * A step that is not taken: the system refuses it, or ({@code cannot}) the adapter cannot bring it
 * to try.
 */
public final class Refused extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Whether nobody asked the system: the step is listed as not driven, and is no difference. */
  public final boolean cannot;

  private Refused(String why, boolean cannot) {
    super(why, null, false, false);
    this.cannot = cannot;
  }

  /** The system does not take the step. */
  public static Refused because(String why) {
    return new Refused(why, false);
  }

  /** The adapter cannot bring the system to try the step. */
  public static Refused cannot(String why) {
    return new Refused(why, true);
  }
}
