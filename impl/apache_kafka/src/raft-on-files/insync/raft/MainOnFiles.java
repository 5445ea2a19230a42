package insync.raft;

import com.fasterxml.jackson.databind.JsonNode;
import insync.conform.Conversation;

/** KafkaRaftClients on Kafka's own files, behind the protocol of docs/conform.md. */
public final class MainOnFiles extends Main {
  public static void main(String[] arguments) throws Exception {
    new Conversation<>(new MainOnFiles()).run();
  }

  @Override
  public Greeting hello(JsonNode constants) {
    Greeting of = super.hello(constants);
    return new Greeting(of.name() + ", on files", of.variables(), of.actions(), of.enabled());
  }

  @Override
  Disk firstDisk(int voter) {
    return new FileDisk(0, voter);
  }
}
