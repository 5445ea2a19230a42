package insync.found;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;

/** Folders of temporary files. */
public final class Folders {
  private Folders() {}

  /**
   * Removes a folder as far as that goes. A file that vanishes meanwhile, or that cannot be
   * removed, is no reason to end: a verdict is already there, and would be forgotten.
   */
  public static void remove(Path folder) {
    try {
      Files.walkFileTree(folder, new Removal());
    } catch (IOException problem) {
      Story.detail("%s is left behind: %s", folder, problem);
    }
  }

  private static final class Removal extends SimpleFileVisitor<Path> {
    @Override
    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
      return delete(file);
    }

    @Override
    public FileVisitResult visitFileFailed(Path file, IOException problem) {
      return FileVisitResult.CONTINUE;
    }

    @Override
    public FileVisitResult postVisitDirectory(Path folder, IOException problem) {
      return delete(folder);
    }

    private static FileVisitResult delete(Path file) {
      file.toFile().delete();
      return FileVisitResult.CONTINUE;
    }
  }
}
