// File links: creation, and the decision about each use.
import { FILE_LINK_PATH, type CreateFileLinkBody, type FileLink } from '@berth/contract/files/links.ts';
import { SANDBOX_ACTION_RULES } from '@berth/contract/sandboxes/state.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { filePath } from '../../rules/files/path.ts';
import { inactiveReason } from '../../rules/previews/link-creator.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import { newId } from '../../store/database/ids.ts';
import { findFileLinkAccess } from '../../store/files/links.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { requireOrgPermission } from '../access/access.ts';
import type { ServiceContext } from '../context/context.ts';
import { fileLinkToken, readFileLink, type FileLinkTerms } from './link-token.ts';
import { noteChange } from './use.ts';

export type { FileLinkTerms };

/** Method of the request that uses a link. */
export const FILE_LINK_METHODS = { read: 'GET', write: 'PUT' } as const;
const PERMISSIONS = { read: 'sandbox.files.read', write: 'sandbox.files.write' } as const;

/** Creates a link; the sandbox may be asleep, and the file need not exist. */
export async function createFileLink(
  context: ServiceContext,
  call: { actor: Actor; sandbox: LocatedSandboxRow },
  body: CreateFileLinkBody,
): Promise<FileLink> {
  const { actor, sandbox } = call;
  const { action, maxBytes = null, overwrite = true, fileName = null } = body;
  // The route requires the permission of a read.
  if (action === 'write') await requireOrgPermission(context, actor, sandbox.org_id, PERMISSIONS.write);
  const path = filePath(body.path);
  requireLegal('file_link', sandbox.status);
  const id = newId('fileLink');
  const expiresAtMs = Date.now() + body.expiresInSeconds * 1_000;
  const expiresAt = new Date(expiresAtMs).toISOString();
  const creator = { userId: actor.userId, keyId: actor.kind === 'api_key' ? actor.id : null };
  const terms = { id, sandboxId: sandbox.id, action, path, expiresAtMs, creator, maxBytes, overwrite, fileName };
  const token = fileLinkToken(context.secretKey.keysFor('file-link'), terms);
  const limited = maxBytes === null ? {} : { maxBytes };
  await noteChange(context, call, 'sandbox_file_link_created', { linkId: id, action, path, expiresAt, ...limited });
  const url = `${context.settings.publicUrl}${FILE_LINK_PATH}/${token}`;
  return { id, url, method: FILE_LINK_METHODS[action], path, action, expiresAt };
}

/** The terms of a link. Throws `file_link_invalid`; costs no query. */
export function termsOfLink({ secretKey }: ServiceContext, token: string): FileLinkTerms {
  const terms = readFileLink(secretKey.keysFor('file-link'), token);
  if (terms === null)
    throw new CodedError('file_link_invalid', 'the file link is incomplete, or not of this installation');
  return terms;
}

/**
 * The sandbox of a link that opens now: before its expiry, while the sandbox exists and the creator
 * may do the same. Throws `file_link_expired`.
 */
export async function requireOpenLink(
  context: Pick<ServiceContext, 'db'>,
  { sandboxId, action, expiresAtMs, creator }: FileLinkTerms,
): Promise<LocatedSandboxRow> {
  if (expiresAtMs <= Date.now())
    throw new CodedError('file_link_expired', `the file link expired at ${new Date(expiresAtMs).toISOString()}`);
  const found = await findFileLinkAccess(context.db, sandboxId, creator);
  // Holders learn nothing about the org's keys, members and sandboxes.
  const isOpen =
    found !== undefined &&
    SANDBOX_ACTION_RULES.file_link[found.sandbox.status] === 'do' &&
    inactiveReason(found.creator, PERMISSIONS[action]) === null;
  if (!isOpen) throw new CodedError('file_link_expired', 'the file link was withdrawn');
  return found.sandbox;
}
