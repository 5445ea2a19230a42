package insync.node;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * Notes how much of each segment is durable: a line "SIZE PATH" after each flush, the path relative
 * to the folder of logs. A later line of the same path holds.
 */
public final class Flushed {
  private static final String RECORD = System.getProperty("insync.flush.record");
  private static final Path LOGS = Path.of(System.getProperty("insync.logs", "/"));
  private static final Map<String, Integer> DURABLE = new HashMap<>();
  private static FileOutputStream out;

  private Flushed() {}

  /** So many bytes of a segment were there before it was flushed, and are durable now. */
  public static synchronized void note(File segment, int size) {
    if (RECORD != null) {
      write(LOGS.relativize(segment.toPath().toAbsolutePath()).toString(), size);
    }
  }

  /** A segment was cut to so many bytes: what is appended from here on is not durable. */
  public static synchronized void truncated(File segment, int size) {
    if (RECORD == null) {
      return;
    }
    open();
    String path = LOGS.relativize(segment.toPath().toAbsolutePath()).toString();
    if (DURABLE.getOrDefault(path, 0) > size) {
      write(path, size);
    }
  }

  private static void write(String path, int size) {
    open();
    DURABLE.put(path, size);
    try {
      out.write((size + " " + path + "\n").getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void open() {
    if (out != null) {
      return;
    }
    try {
      Path record = Path.of(RECORD);
      if (Files.exists(record)) {
        for (String line : Files.readAllLines(record)) {
          int space = line.indexOf(' ');
          DURABLE.put(line.substring(space + 1), Integer.parseInt(line.substring(0, space)));
        }
      }
      out = new FileOutputStream(record.toFile(), true);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
