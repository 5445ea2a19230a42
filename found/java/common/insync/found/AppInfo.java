package insync.found;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

/** Which Kafka is on the class path. */
public final class AppInfo {
  private AppInfo() {}

  /** Its version, as its own jar says. */
  public static String version() {
    Properties properties = new Properties();
    try (InputStream file = AppInfo.class.getResourceAsStream("/kafka/kafka-version.properties")) {
      properties.load(file);
    } catch (IOException e) {
      return "of unknown version";
    }
    return properties.getProperty("version");
  }
}
