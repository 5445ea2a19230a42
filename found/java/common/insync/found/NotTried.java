package insync.found;

/** The scenario did not get to where its question is decided. */
public final class NotTried extends Exception {
  private static final long serialVersionUID = 1;

  /** Why not. */
  public NotTried(String why) {
    super(why);
  }
}
