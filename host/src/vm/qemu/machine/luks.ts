// The LUKS header of an encrypted disk, written directly because `qemu-img create` measures the
// processor for a second to choose a key derivation. A pure function of the disk key.
//
//   header | key material of slot 1, encrypted with the passphrase | seven unused slots
import { createCipheriv, createHash, hkdfSync, pbkdf2Sync } from 'node:crypto';

const SECTOR_BYTES = 512;
const MASTER_KEY_BYTES = 64;
/** QEMU accepts no other number. */
const STRIPES = 4_000;
const SLOTS = 8;
const FIRST_SLOT_SECTOR = 8;
/** Key material, rounded up to 4 KiB. */
const SLOT_SECTORS = 504;
const ACTIVE = 0x00_ac_71_f3;
const INACTIVE = 0x00_00_de_ad;
/** The passphrase has 256 random bits, so that more would only delay each start. */
const ITERATIONS = 1_000;
const HASH = 'sha256';
const HASH_BYTES = 32;

/** Bytes to reserve in the image. */
export const LUKS_BYTES = (FIRST_SLOT_SECTOR + SLOTS * SLOT_SECTORS) * SECTOR_BYTES;

/** Passphrase of a disk, which QEMU requires as text. */
export function passphraseOf(diskKey: string): string {
  return derive(diskKey, 'passphrase', 32).toString('base64url');
}

/** The first bytes of the LUKS header (version 1, aes-xts-plain64); the remaining ones are zero. */
export function luksHeader(diskKey: string): Buffer {
  const masterKey = derive(diskKey, 'master key', MASTER_KEY_BYTES);
  const [digestSalt, slotSalt] = [derive(diskKey, 'digest salt', 32), derive(diskKey, 'slot salt', 32)];
  const image = Buffer.alloc(FIRST_SLOT_SECTOR * SECTOR_BYTES + MASTER_KEY_BYTES * STRIPES);
  image.write('LUKS\xba\xbe', 0, 'latin1');
  image.writeUInt16BE(1, 6);
  image.write('aes', 8);
  image.write('xts-plain64', 40);
  image.write(HASH, 72);
  image.writeUInt32BE(LUKS_BYTES / SECTOR_BYTES, 104); // payload, in sectors
  image.writeUInt32BE(MASTER_KEY_BYTES, 108);
  pbkdf2Sync(masterKey, digestSalt, ITERATIONS, 20, HASH).copy(image, 112);
  digestSalt.copy(image, 132);
  image.writeUInt32BE(ITERATIONS, 164);
  image.write(uuidOf(derive(diskKey, 'uuid', 16)), 168);
  for (let slot = 0; slot < SLOTS; slot += 1) {
    const at = 208 + slot * 48;
    image.writeUInt32BE(slot === 0 ? ACTIVE : INACTIVE, at);
    image.writeUInt32BE(slot === 0 ? ITERATIONS : 0, at + 4);
    if (slot === 0) slotSalt.copy(image, at + 8);
    image.writeUInt32BE(FIRST_SLOT_SECTOR + slot * SLOT_SECTORS, at + 40);
    image.writeUInt32BE(STRIPES, at + 44);
  }
  const slotKey = pbkdf2Sync(passphraseOf(diskKey), slotSalt, ITERATIONS, MASTER_KEY_BYTES, HASH);
  encryptSectors(slotKey, split(masterKey)).copy(image, FIRST_SLOT_SECTOR * SECTOR_BYTES);
  return image;
}

/** Result of the diffusion of all stripes but the last, which are zero. */
let diffused: Buffer | null = null;

/**
 * Splits a key over the stripes. LUKS fills all but the last with random bytes, for disks that keep
 * overwritten parts. Encrypted zeroes are enough here: destroying the disk key destroys them all.
 */
function split(key: Buffer): Buffer {
  const stripes = Buffer.alloc(key.length * STRIPES);
  if (diffused === null) {
    diffused = Buffer.alloc(key.length);
    for (let stripe = 1; stripe < STRIPES; stripe += 1) diffused = diffuse(diffused);
  }
  const last = stripes.subarray(-key.length);
  key.forEach((byte, at) => (last[at] = byte ^ (diffused?.[at] ?? 0)));
  return stripes;
}

function diffuse(block: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < block.length; at += HASH_BYTES) {
    const number = Buffer.alloc(4);
    number.writeUInt32BE(at / HASH_BYTES);
    parts.push(
      createHash(HASH)
        .update(number)
        .update(block.subarray(at, at + HASH_BYTES))
        .digest(),
    );
  }
  return Buffer.concat(parts);
}

/** AES-XTS with the number of the sector as IV, from zero. */
function encryptSectors(key: Buffer, plain: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < plain.length; at += SECTOR_BYTES) {
    const iv = Buffer.alloc(16);
    iv.writeUInt32LE(at / SECTOR_BYTES);
    parts.push(createCipheriv('aes-256-xts', key, iv).update(plain.subarray(at, at + SECTOR_BYTES)));
  }
  return Buffer.concat(parts);
}

function derive(diskKey: string, use: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync(HASH, Buffer.from(diskKey, 'base64url'), Buffer.alloc(0), `berth disk ${use}`, bytes));
}

function uuidOf(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
