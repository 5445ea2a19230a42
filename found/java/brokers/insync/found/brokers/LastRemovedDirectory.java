package insync.found.brokers;

import insync.found.Story;
import java.util.List;

/**
 * The same where r1 is the last to stop: found/removed-directory, the way "last". Up to 4.2.2 r1's
 * new directory empties the ELR, and r1 is elected as the one that led last. There that is so with
 * --control, too.
 */
public final class LastRemovedDirectory {
  private LastRemovedDirectory() {}

  /** Ends with {@link Story}'s verdict. */
  public static void main(String[] arguments) throws Exception {
    Story.play(
        LastRemovedDirectory.class,
        arguments,
        control ->
            Cluster.playWithTwoDirectories(
                2,
                List.of(1, 2, 3),
                cluster -> RemovedDirectory.run(cluster, control, List.of(3, 2, 1))));
  }
}
