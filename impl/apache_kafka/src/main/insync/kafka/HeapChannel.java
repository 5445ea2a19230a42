package insync.kafka;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;
import java.util.Arrays;

/**
 * The file of a log segment, on the heap: Kafka's FileRecords reads and writes it as any other, and
 * it can be copied.
 */
final class HeapChannel extends FileChannel {
  private byte[] bytes;
  private int size;
  private int position;
  private int flushed;

  HeapChannel(byte[] content, int flushed) {
    bytes = Arrays.copyOf(content, Math.max(256, content.length));
    size = content.length;
    position = size;
    this.flushed = flushed;
  }

  /** All that was written. */
  byte[] content() {
    return Arrays.copyOf(bytes, size);
  }

  /** How many bytes Kafka had forced to the disk. */
  int flushed() {
    return flushed;
  }

  @Override
  public int read(ByteBuffer into) {
    int n = read(into, position);
    position += Math.max(0, n);
    return n;
  }

  @Override
  public int read(ByteBuffer into, long from) {
    if (from >= size) {
      return -1;
    }
    int n = Math.min(into.remaining(), size - (int) from);
    into.put(bytes, (int) from, n);
    return n;
  }

  @Override
  public long read(ByteBuffer[] into, int offset, int length) {
    throw new UnsupportedOperationException();
  }

  @Override
  public int write(ByteBuffer from) {
    int n = write(from, position);
    position += n;
    return n;
  }

  @Override
  public int write(ByteBuffer from, long at) {
    int n = from.remaining();
    int end = (int) at + n;
    if (end > bytes.length) {
      bytes = Arrays.copyOf(bytes, 2 * end);
    }
    from.get(bytes, (int) at, n);
    size = Math.max(size, end);
    return n;
  }

  @Override
  public long write(ByteBuffer[] from, int offset, int length) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long position() {
    return position;
  }

  @Override
  public FileChannel position(long at) {
    position = (int) at;
    return this;
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public FileChannel truncate(long to) {
    size = Math.min(size, (int) to);
    position = Math.min(position, size);
    flushed = Math.min(flushed, size);
    return this;
  }

  @Override
  public void force(boolean metaData) {
    flushed = size;
  }

  @Override
  public long transferTo(long from, long count, WritableByteChannel to) throws IOException {
    int n = Math.min((int) count, size - (int) from);
    return to.write(ByteBuffer.wrap(bytes, (int) from, n));
  }

  @Override
  public long transferFrom(ReadableByteChannel from, long at, long count) {
    throw new UnsupportedOperationException();
  }

  @Override
  public MappedByteBuffer map(MapMode mode, long from, long count) {
    throw new UnsupportedOperationException();
  }

  @Override
  public FileLock lock(long from, long count, boolean shared) {
    throw new UnsupportedOperationException();
  }

  @Override
  public FileLock tryLock(long from, long count, boolean shared) {
    throw new UnsupportedOperationException();
  }

  @Override
  protected void implCloseChannel() {}
}
