// Files of a sandbox. Requested only by an action of the person: a request counts as use of the
// sandbox, and may wake it.
import { queryOptions } from '@tanstack/react-query';
import { BerthError, type api, type SandboxFiles } from '@berth/sdk';
import { nameOf, parentOf } from '../rules/files.ts';
import { berth } from '../session/client.ts';
import { queries } from './client.ts';

/** Outside the keys of the sandbox, which the feed reads again. */
const keyOf = (sandboxId: string) => ['files', sandboxId] as const;
const ON_DEMAND = {
  staleTime: Number.POSITIVE_INFINITY,
  refetchOnWindowFocus: false,
  refetchOnReconnect: false,
} as const;
const HEAD_BYTES = 512;

export const folderQuery = (sandboxId: string, path: string) =>
  queryOptions({
    ...ON_DEMAND,
    queryKey: [...keyOf(sandboxId), 'folder', path],
    queryFn: ({ signal }) => berth.raw.listFiles({ path: { sandboxId }, query: { path }, signal }),
  });

/** The content of a file; always read again when its view opens. */
export const fileQuery = (sandboxId: string, path: string) =>
  queryOptions({
    ...ON_DEMAND,
    gcTime: 0,
    queryKey: [...keyOf(sandboxId), 'file', path],
    queryFn: ({ signal }) => readFile(sandboxId, path, signal),
  });

export async function readFile(sandboxId: string, path: string, signal?: AbortSignal): Promise<api.FileContent> {
  return await berth.raw.readFile({
    path: { sandboxId },
    query: { path },
    ...(signal === undefined ? {} : { signal }),
  });
}

/** The first bytes of a file of any size. */
export const headQuery = (sandboxId: string, path: string) =>
  queryOptions({
    ...ON_DEMAND,
    gcTime: 0,
    queryKey: [...keyOf(sandboxId), 'head', path],
    queryFn: async ({ signal }) => {
      const { stream } = await (await filesOf(sandboxId)).download(path, { signal });
      const reader = stream.getReader();
      const head: number[] = [];
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        head.push(...read.value.subarray(0, HEAD_BYTES - head.length));
        if (head.length >= HEAD_BYTES) break;
      }
      await reader.cancel();
      return Uint8Array.from(head);
    },
  });

async function filesOf(sandboxId: string): Promise<SandboxFiles> {
  return (await berth.sandboxes.get(sandboxId)).files;
}

export const refreshFolders = (sandboxId: string): Promise<void> =>
  queries.invalidateQueries({ queryKey: [...keyOf(sandboxId), 'folder'] });

/** Not awaited: a large folder takes its time. */
const thenRefresh = (sandboxId: string, { path }: { path: string }): void =>
  void queries.invalidateQueries({ queryKey: folderQuery(sandboxId, parentOf(path)).queryKey });

/** @param ifUnchanged hash of the content that the text is based on, or `absent` */
export async function saveFile(sandboxId: string, path: string, content: string, ifUnchanged: string) {
  const saved = await berth.raw.writeFile({ path: { sandboxId }, body: { path, content, ifUnchanged } });
  thenRefresh(sandboxId, saved);
  return saved;
}

export async function uploadFile(sandboxId: string, path: string, file: File, replace: boolean): Promise<void> {
  const files = await filesOf(sandboxId);
  thenRefresh(sandboxId, await files.upload(path, file, replace ? {} : { ifUnchanged: 'absent' }));
}

export async function createFolder(sandboxId: string, path: string): Promise<void> {
  thenRefresh(sandboxId, await berth.raw.createFolder({ path: { sandboxId }, body: { path } }));
}

/** Returns the new path. */
export async function moveFile(sandboxId: string, from: string, to: string): Promise<string> {
  const moved = await berth.raw.moveFile({ path: { sandboxId }, body: { from, to } });
  void refreshFolders(sandboxId);
  return moved.to;
}

export async function deleteFile(sandboxId: string, path: string): Promise<void> {
  const query = { path, recursive: 'true' } as const;
  thenRefresh(sandboxId, await berth.raw.deleteFile({ path: { sandboxId }, query }));
}

/** Saves the file with the browser. */
export async function downloadFile(sandboxId: string, path: string): Promise<void> {
  const { stream } = await (await filesOf(sandboxId)).download(path);
  saveWithBrowser(await new Response(stream).blob(), nameOf(path));
}

export function saveWithBrowser(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

export const isCode = (error: Error | null, code: string): boolean =>
  error instanceof BerthError && error.code === code;
