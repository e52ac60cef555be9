// The per-VM disk: an empty qcow2 overlay, written directly because `qemu-img create` costs a
// process. The image never names its backing file: QEMU gets the whole chain with formats, and
// probes nothing.
import { randomBytes } from 'node:crypto';
import { open } from 'node:fs/promises';
import { DriverError } from '../../driver.ts';
import { LUKS_BYTES, luksHeader } from './luks.ts';

const CLUSTER_BITS = 16;
const CLUSTER_BYTES = 2 ** CLUSTER_BITS;
/** An L1 entry maps an L2 table, which fills a cluster: 8,192 clusters. */
const BYTES_PER_L1_ENTRY = CLUSTER_BYTES * (CLUSTER_BYTES / 8);
/** "QFI\xfb" */
const MAGIC = 0x51_46_49_fb;
const VERSION = 3;
const HEADER_BYTES = 104;
const GIB = 2 ** 30;
/** Value of the header's field `crypt_method`. */
const LUKS_METHOD = 2;
/** The LUKS header follows the L1 table. */
const LUKS_AT = 4 * CLUSTER_BYTES;
const LUKS_CLUSTERS = Math.ceil(LUKS_BYTES / CLUSTER_BYTES);

/**
 * Header extension of ours, which QEMU keeps: the id of the template below the disk, in ASCII, and
 * a mark. Both survive a copy of the file.
 */
const OWN_EXTENSION = 0x62_72_74_68;
const BASE_BYTES = 24;
const MARK_BYTES = 16;
/** All header extensions end before this offset, also after QEMU has written the header anew. */
const EXTENSIONS_END = 4_096;

/** Largest disk whose L1 table fits into its single cluster. */
export const OVERLAY_MAX_GIB = ((CLUSTER_BYTES / 8) * BYTES_PER_L1_ENTRY) / GIB;

/**
 * Content of an empty qcow2 (version 3) image of this virtual size: header, refcount table, one
 * refcount block and L1 table in four clusters, then the LUKS header if encrypted. Throws for sizes
 * outside 1 to {@link OVERLAY_MAX_GIB}.
 */
function emptyQcow2(sizeGib: number, base: string, encrypted: boolean): Buffer {
  if (!Number.isSafeInteger(sizeGib) || sizeGib < 1 || sizeGib > OVERLAY_MAX_GIB)
    throw new RangeError(`a disk has 1 to ${OVERLAY_MAX_GIB} GiB, not ${sizeGib}`);

  const sizeBytes = sizeGib * GIB;
  // The L1 table, the last cluster, is all zero, and the unwritten part of the file reads as zero.
  const image = Buffer.alloc(3 * CLUSTER_BYTES);
  image.writeUInt32BE(MAGIC, 0);
  image.writeUInt32BE(VERSION, 4);
  image.writeUInt32BE(CLUSTER_BITS, 20);
  image.writeBigUInt64BE(BigInt(sizeBytes), 24);
  image.writeUInt32BE(Math.ceil(sizeBytes / BYTES_PER_L1_ENTRY), 36); // entries of the L1 table
  image.writeBigUInt64BE(BigInt(3 * CLUSTER_BYTES), 40); // L1 table: fourth cluster
  image.writeBigUInt64BE(BigInt(CLUSTER_BYTES), 48); // refcount table: second cluster
  image.writeUInt32BE(1, 56); // clusters of the refcount table
  image.writeUInt32BE(4, 96); // refcounts of 2^4 bits
  image.writeUInt32BE(HEADER_BYTES, 100);
  image.writeBigUInt64BE(BigInt(2 * CLUSTER_BYTES), CLUSTER_BYTES); // refcount table: one block, the third cluster
  for (let cluster = 0; cluster < (encrypted ? 4 + LUKS_CLUSTERS : 4); cluster += 1)
    image.writeUInt16BE(1, 2 * CLUSTER_BYTES + 2 * cluster);
  if (encrypted) {
    image.writeUInt32BE(LUKS_METHOD, 32);
    // Header extension: where the LUKS header is.
    image.writeUInt32BE(0x05_37_be_77, HEADER_BYTES);
    image.writeUInt32BE(16, HEADER_BYTES + 4);
    image.writeBigUInt64BE(BigInt(LUKS_AT), HEADER_BYTES + 8);
    image.writeBigUInt64BE(BigInt(LUKS_BYTES), HEADER_BYTES + 16);
  }
  ownExtension(base).copy(image, HEADER_BYTES + (encrypted ? 24 : 0));

  return image;
}

function ownExtension(base: string): Buffer {
  if (!/^[0-9a-f]{24}$/.test(base)) throw new RangeError(`'${base}' is not the id of a template or image`);
  const extension = Buffer.alloc(8 + BASE_BYTES + MARK_BYTES);
  extension.writeUInt32BE(OWN_EXTENSION, 0);
  extension.writeUInt32BE(BASE_BYTES + MARK_BYTES, 4);
  extension.write(base, 8, 'latin1');
  return extension;
}

/**
 * Writes an empty overlay on a base; the path must not exist. Not flushed: a VM whose create was
 * interrupted is destroyed, not resumed.
 * @param base id of the template; of the image for the template's own disk
 */
export async function writeOverlay(
  path: string,
  sizeGib: number,
  base: string,
  diskKey: string | null = null,
): Promise<void> {
  const content = emptyQcow2(sizeGib, base, diskKey !== null);
  const file = await open(path, 'wx', 0o600);
  try {
    await file.truncate(diskKey === null ? LUKS_AT : LUKS_AT + LUKS_CLUSTERS * CLUSTER_BYTES);
    // Only the nonzero parts: the header and the first bytes of both refcount clusters.
    for (const at of [0, CLUSTER_BYTES, 2 * CLUSTER_BYTES]) await file.write(content, at, 512, at);
    if (diskKey !== null) await file.write(luksHeader(diskKey), 0, null, LUKS_AT);
  } finally {
    await file.close();
  }
}

/** Incompatible feature bits that our QEMU may leave behind: "dirty" and "corrupt". */
const STALE_FEATURES = 0b11n;

/**
 * Rejects with {@link DriverError} for a disk on another base, and for a disk whose header requests
 * more than QEMU's command line does. A compromised QEMU may have written it, and the next QEMU
 * opens it while still root. A header can name an external data file (incompatible feature bit 2),
 * regardless of other options.
 */
export async function assertOwnOverlay(path: string, base: string, encrypted = false): Promise<void> {
  const header = await readHeader(path);
  const isPlain =
    header !== null &&
    header.readUInt32BE(0) === MAGIC &&
    header.readUInt32BE(4) === VERSION &&
    header.readBigUInt64BE(8) === 0n && // no backing file
    header.readUInt32BE(32) === (encrypted ? LUKS_METHOD : 0) &&
    (header.readBigUInt64BE(72) & ~STALE_FEATURES) === 0n;
  if (!isPlain) throw new DriverError('the disk has an unexpected header');
  const named = findOwn(header)?.base;
  if (named !== undefined && named !== base)
    throw new DriverError(`the disk is based on template ${named.replaceAll(/[^0-9a-f]/g, '?')}, not on ${base}`);
}

/** The disk's mark, 32 hex digits. Null for a disk of an earlier release that never slept since. */
export async function readMark(path: string): Promise<string | null> {
  const header = await readHeader(path);
  return (header && findOwn(header)?.mark) ?? null;
}

export function newMark(): string {
  return randomBytes(MARK_BYTES).toString('hex');
}

/** Replaces the disk's mark, while QEMU does not have it open for writing. Not flushed. */
export async function writeMark(path: string, base: string, mark: string): Promise<void> {
  const header = await readHeader(path);
  if (header === null) throw new DriverError('the disk has no header');
  const extension = ownExtension(base);
  extension.write(mark, 8 + BASE_BYTES, 'hex');
  await using file = await open(path, 'r+');
  await file.write(extension, 0, null, findOwn(header)?.at ?? endOfExtensions(header));
}

async function readHeader(path: string): Promise<Buffer | null> {
  await using file = await open(path, 'r');
  const header = Buffer.alloc(EXTENSIONS_END);
  const { bytesRead } = await file.read(header, 0, header.length, 0);
  return bytesRead === header.length ? header : null;
}

function findOwn(header: Buffer): { at: number; base: string; mark: string } | null {
  for (const { type, at, bytes } of extensionsOf(header)) {
    if (type !== OWN_EXTENSION || bytes !== BASE_BYTES + MARK_BYTES) continue;
    const markAt = at + 8 + BASE_BYTES;
    const base = header.toString('latin1', at + 8, markAt);
    return { at, base, mark: header.toString('hex', markAt, markAt + MARK_BYTES) };
  }
  return null;
}

/** The header's own length, which QEMU may extend. */
const startOfExtensions = (header: Buffer): number => Math.max(HEADER_BYTES, header.readUInt32BE(100));

function endOfExtensions(header: Buffer): number {
  const last = extensionsOf(header).at(-1);
  const end = last === undefined ? startOfExtensions(header) : last.at + last.length;
  if (end + 8 + BASE_BYTES + MARK_BYTES > EXTENSIONS_END) throw new DriverError('the header of the disk is full');
  return end;
}

interface Extension {
  type: number;
  at: number;
  /** Size of its data; `length` includes head and padding. */
  bytes: number;
  length: number;
}

/** The header extensions up to their end, or up to one that leaves the header. */
function extensionsOf(header: Buffer): Extension[] {
  const found: Extension[] = [];
  for (let at = startOfExtensions(header); at + 8 <= header.length;) {
    const type = header.readUInt32BE(at);
    const bytes = header.readUInt32BE(at + 4);
    const length = 8 + Math.ceil(bytes / 8) * 8;
    if (type === 0 || at + length > header.length) break;
    found.push({ type, at, bytes, length });
    at += length;
  }
  return found;
}
