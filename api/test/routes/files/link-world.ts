// File links for tests: creates them through the API and uses them as anyone would.
import assert from 'node:assert/strict';
import { errorEnvelope, ERRORS } from '@berth/contract/route/errors.ts';
import type { FileLink } from '@berth/contract/files/links.ts';
import type { TestApi } from '../../world/api.ts';

export interface Used {
  status: number;
  headers: Headers;
  text: string;
  /** Code of a failure. */
  code: string | undefined;
  message: string | undefined;
}

/** Creates a link; its token must be in no log, table or argument list at the end of the file. */
export async function makeLink(
  api: TestApi,
  sandboxId: string,
  body: { path: string; action: 'read' | 'write'; [name: string]: unknown },
  token?: string,
): Promise<FileLink> {
  const path = `/v1/sandboxes/${sandboxId}/files/links`;
  const made = await api.call('POST', path, { body, ...(token === undefined ? {} : { token }) });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { link } = made.body as { link: FileLink };
  api.secret(tokenOf(link), 'the token of a file link');
  // The tests' settings name another port than the one that listens.
  return { ...link, url: at(api.url, link) };
}

export const tokenOf = ({ url }: { url: string }): string => url.slice(url.lastIndexOf('/') + 1);

/** The link at another replica. */
export const at = (replica: string, link: { url: string }): string => `${replica}/file-links/${tokenOf(link)}`;

/** Requests the URL with its method, without credentials. Failures must have the envelope. */
export async function use(link: { url: string; method?: string }, init: RequestInit = {}): Promise<Used> {
  const response = await fetch(link.url, { method: link.method ?? 'GET', ...init });
  const { status, headers } = response;
  const text = await response.text();
  if (status < 400 || text === '') return { status, headers, text, code: undefined, message: undefined };
  const { error } = errorEnvelope.parse(JSON.parse(text));
  assert.equal(status, ERRORS[error.code].status);
  return { status, headers, text, code: error.code, message: error.message };
}
