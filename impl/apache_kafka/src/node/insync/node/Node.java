package insync.node;

import java.io.IOException;

/** A node of Apache Kafka that ends at once when whoever started it is gone. */
public final class Node {
  private Node() {}

  /** The argument is the node's server.properties; the standard input ends with its starter. */
  public static void main(String[] arguments) {
    Thread tie = new Thread(Node::endWithParent, "insync-tied");
    tie.setDaemon(true);
    tie.start();
    kafka.Kafka.main(arguments);
  }

  private static void endWithParent() {
    try {
      while (System.in.read() >= 0) {
        // nobody says anything
      }
    } catch (IOException e) {
      // then it has ended, too
    }
    Runtime.getRuntime().halt(1);
  }
}
