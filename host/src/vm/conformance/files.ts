// Conformance: files are written, read and listed from outside as the user of commands, byte for
// byte, and live as long as the disk.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { listFiles, readFile, writeFile } from '@berth/protocol/calls/files.ts';
import { FILE_READ_BYTES, FILE_WRITE_BYTES } from '@berth/protocol/files.ts';
import { parseListing } from '@berth/protocol/listing.ts';
import type { GuestClient } from '../../guest/client.ts';

import { outputOf, type ConformanceOptions, type Subject } from './subject.ts';

const NEVER = new AbortController().signal;

export function filesConform(current: () => Subject, { spec }: ConformanceOptions): void {
  describe('files of a VM', () => {
    it('read back byte for byte, belong to the user of commands and are visible to commands', async () => {
      const vm = await current().create(spec);
      const { client } = vm;
      const content = randomBytes(FILE_WRITE_BYTES);
      assert.deepEqual(await write(client, '/code/new/folder/ä 🦭\n', content), { size: FILE_WRITE_BYTES });
      assert.ok((await read(client, '/code/new/folder/ä 🦭\n')).equals(content));
      assert.equal(
        await outputOf(client, "stat -c '%U %a' /code/new/folder /code/new/folder/*"),
        'berth 755\nberth 644',
      );

      await outputOf(client, 'echo made by a command > made; chmod 750 made; ln -s made link; mkfifo fifo');
      assert.equal((await read(client, '/code/link')).toString(), 'made by a command\n');
      await write(client, '/code/link', Buffer.from('#!/bin/sh\necho written\n'));
      assert.equal(await outputOf(client, './made; stat -c %a made; readlink link'), 'written\n750\nmade');

      const listing = parseListing(
        await bytesOf(await client.stream(listFiles, { query: { path: '/code', depth: 2 } }, { signal: NEVER })),
        {
          root: '/code',
          depth: 2,
        },
      );
      assert.deepEqual(
        listing?.folders.map(({ path, entries }) => [
          path,
          entries.map(({ name, kind }) => `${name} ${kind}`).toSorted(),
        ]),
        [
          ['', ['fifo other', 'link link', 'made file', 'new directory']],
          ['/new', ['folder directory']],
        ],
      );
      await current().destroy(vm);
    });

    it('are refused for missing paths, non-files, files over the limit and forbidden folders', async () => {
      const vm = await current().create(spec);
      const { client } = vm;
      await outputOf(client, `mkfifo fifo; truncate -s ${FILE_READ_BYTES + 1} long; ln -s ring ring`);
      for (const [path, code] of [
        ['/code/missing', 'file_not_found'],
        ['/code', 'not_a_file'],
        ['/code/fifo', 'not_a_file'],
        ['/dev/null', 'not_a_file'],
        ['/code/long/below', 'not_a_directory'],
        ['/code/long', 'file_too_large'],
        ['/code/ring', 'file_path_invalid'],
      ] as const)
        await assert.rejects(read(client, path), { code }, path);

      await assert.rejects(client.stream(listFiles, { query: { path: '/code/long', depth: 1 } }, { signal: NEVER }), {
        code: 'not_a_directory',
      });
      await assert.rejects(write(client, '/usr/bin/new', Buffer.from('x')), { code: 'file_access_denied' });
      await assert.rejects(write(client, '/code/fifo', Buffer.from('x')), { code: 'not_a_file' });
      await current().destroy(vm);
    });

    it('written before a sleep are there after the wake', async () => {
      const vm = await current().create(spec);
      const content = randomBytes(1_000);
      await write(vm.client, '/code/kept', content);
      await current().sleep(vm, spec);
      await current().wake(vm);
      assert.ok((await read(vm.client, '/code/kept')).equals(content));
      await write(vm.client, '/code/kept', Buffer.from('after'));
      assert.equal(await outputOf(vm.client, 'cat kept'), 'after');
      await current().destroy(vm);
    });
  });
}

async function write(client: GuestClient, path: string, content: Buffer): Promise<unknown> {
  const upload = { bytes: content.length, content: Readable.from([content], { objectMode: false }) };
  return client.call(writeFile, { query: { path }, upload }, { signal: NEVER });
}

async function read(client: GuestClient, path: string): Promise<Buffer> {
  return bytesOf(await client.stream(readFile, { query: { path } }, { signal: NEVER }));
}

async function bytesOf(stream: Readable): Promise<Buffer> {
  return Buffer.concat((await stream.toArray()) as Buffer[]);
}
