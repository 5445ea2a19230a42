package insync.found.classes;

import java.nio.file.Path;
import java.util.Properties;
import kafka.server.KafkaConfig;

/** Configurations of brokers that never start. */
final class Configurations {
  private Configurations() {}

  /** Everything at its default but what has none. */
  static KafkaConfig broker(int id, Path logs) {
    Properties properties = new Properties();
    properties.put("process.roles", "broker");
    properties.put("node.id", Integer.toString(id));
    properties.put("controller.quorum.voters", "100@localhost:9090");
    properties.put("controller.listener.names", "CONTROLLER");
    properties.put("listeners", "PLAINTEXT://localhost:" + (9092 + id));
    properties.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
    properties.put("log.dirs", logs.toString());
    properties.put("log.cleaner.enable", "false");
    return new KafkaConfig(properties, false);
  }
}
