package insync.raft;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.UnalignedMemoryRecords;
import org.apache.kafka.common.record.internal.UnalignedRecords;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.RawSnapshotReader;
import org.apache.kafka.snapshot.RawSnapshotWriter;

/** A snapshot in memory, which nobody changes any more. */
public record HeapSnapshot(OffsetAndEpoch snapshotId, ByteBuffer bytes)
    implements RawSnapshotReader {
  @Override
  public long sizeInBytes() {
    return bytes.limit();
  }

  @Override
  public UnalignedRecords slice(long position, int size) {
    int length = (int) Math.min(size, sizeInBytes() - position);
    return new UnalignedMemoryRecords(bytes.slice((int) position, length));
  }

  @Override
  public Records records() {
    return MemoryRecords.readableRecords(bytes.duplicate());
  }

  /** One that is being written to a disk. */
  static final class Writer implements RawSnapshotWriter {
    private final Disk disk;
    private final OffsetAndEpoch id;
    private byte[] content = {};
    private boolean isFrozen;

    Writer(Disk disk, OffsetAndEpoch id) {
      this.disk = disk;
      this.id = id;
    }

    @Override
    public OffsetAndEpoch snapshotId() {
      return id;
    }

    @Override
    public long sizeInBytes() {
      return content.length;
    }

    @Override
    public void append(MemoryRecords records) {
      append(records.buffer());
    }

    @Override
    public void append(UnalignedMemoryRecords records) {
      append(records.buffer());
    }

    private void append(ByteBuffer more) {
      byte[] bytes = new byte[more.remaining()];
      more.duplicate().get(bytes);
      ByteArrayOutputStream all = new ByteArrayOutputStream();
      all.writeBytes(content);
      all.writeBytes(bytes);
      content = all.toByteArray();
    }

    @Override
    public boolean isFrozen() {
      return isFrozen;
    }

    @Override
    public void freeze() {
      isFrozen = true;
      disk.snapshots.put(id, new HeapSnapshot(id, ByteBuffer.wrap(content)));
    }

    @Override
    public void close() {}
  }
}
