package insync.found.brokers;

/** The scenario did not get to where its question is decided. */
final class NotTried extends Exception {
  private static final long serialVersionUID = 1;

  NotTried(String why) {
    super(why);
  }
}
