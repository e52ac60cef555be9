// Writes, reads and lists a file: the content returns unchanged, in the form of the contract.
import { fileContent, folderListing } from '@berth/contract/files/files.ts';
import type { Random } from '../../world/random.ts';
import type { FuzzKind } from '../core/kind.ts';
import { oddName, oddText, randomBytes } from '../core/odd-values.ts';

const LONGEST = 300_000;

export const fileRoundTrips: FuzzKind = {
  name: 'file-round-trips',
  weight: 15,
  run: async (turn) => {
    const { name, random, send, world, wrong } = turn;
    const base = `/v1/sandboxes/${random.pick(world.awake as [string])}`;
    const folder = `round-trips/${name}`;
    const label = fileName(random);
    const path = `${folder}/${label}`;
    const length = random.integer(0, LONGEST);
    const asText = random.chance(0.5);
    const content = asText ? Buffer.from(oddText(random, length)) : randomBytes(random, length);
    const body = asText
      ? { path, content: content.toString() }
      : { path, content: content.toString('base64'), encoding: 'base64' };
    const written = await send({ method: 'PUT', target: `${base}/file`, body: JSON.stringify(body) });
    if (written?.status !== 200) {
      wrong(
        `${name}: a write of ${content.length} bytes to ${JSON.stringify(path)} ` +
          `was answered ${written?.status ?? 'wrongly'}`,
      );
      return;
    }
    const read = await send({ method: 'GET', target: `${base}/file?path=${encodeURIComponent(path)}` });
    if (read !== null) {
      const back = fileContent.safeParse(read.body).data;
      const utf8 = content.equals(Buffer.from(content.toString())) && !content.includes(0);
      if (
        back === undefined ||
        !Buffer.from(back.content, back.encoding).equals(content) ||
        back.encoding !== (utf8 ? 'utf8' : 'base64')
      ) {
        wrong(
          `${name}: ${JSON.stringify(path)} of ${content.length} bytes ` +
            `came back as ${JSON.stringify(read.body).slice(0, 300)}`,
        );
      }
    }
    const listed = await send({ method: 'GET', target: `${base}/files?path=${encodeURIComponent(folder)}` });
    const entries = folderListing.safeParse(listed?.body).data?.entries;
    if (listed !== null && (entries?.length !== 1 || entries[0]?.label !== label || entries[0].type !== 'file')) {
      wrong(
        `${name}: the folder of ${JSON.stringify(label)} is listed as ${JSON.stringify(listed.body).slice(0, 300)}`,
      );
    }
  },
};

/** A valid file name. */
function fileName(random: Random): string {
  for (;;) {
    const name = oddName(random);
    const possible = name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name) && name.isWellFormed();
    if (possible && Buffer.byteLength(name) <= 255) return name;
  }
}
