// Projects: what sandboxes belong to inside an org, and the defaults they fall back to.
import { z } from 'zod';
import { IDLE_MINUTES, NAME_CHARACTERS, REPO_CREDENTIAL_CHARACTERS } from './limits.ts';
import { profile } from './machine-sizes.ts';
import { pageFields, pageQuery } from './page.ts';
import { defineRoute } from './route.ts';
import { branchName, metadata, persistencePolicy, repository } from './sandbox-fields.ts';
import { idText, text, timestamp } from './text.ts';

/** Free text with one known value: `external` means that the machines serve the operator's product users. */
const useCase = text(1, 64);
export const DEFAULT_USE_CASE = 'internal';
export const EXTERNAL_USE_CASE = 'external';

export const project = z.strictObject({
  id: idText,
  orgId: idText,
  name: z.string(),
  useCase: z.string(),
  defaultRepository: z.string().nullable(),
  defaultBranch: z.string().nullable(),
  defaultProfile: profile.nullable(),
  defaultPersistencePolicy: persistencePolicy.nullable(),
  /** Minutes without use after which its `sleep_resume` sandboxes go to sleep by themselves; 0: never; null: 30. */
  defaultIdleMinutes: z.int().nonnegative().nullable(),
  /** Whether a command or preview of a stopped sandbox wakes it. */
  wakeOnUse: z.boolean(),
  /** Machine hours a billing period; null: no cap of its own. */
  sandboxMachineHourLimit: z.number().nonnegative().nullable(),
  /** Flat labels, as of a sandbox. */
  metadata: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  /** Whether credentials for its repositories are stored; they are never answered. */
  hasRepoCredentials: z.boolean(),
  createdAt: timestamp,
  updatedAt: timestamp,
  deletedAt: timestamp.nullable(),
});
export type Project = z.infer<typeof project>;

/**
 * What a git host asks for over HTTPS: a token, and a user name where the host wants one; of the characters that Basic authentication takes (RFC 7617).
 * Encrypted at rest, never answered, never logged. `writeOnly` is the document's word for it; messages about wrong values show none below it.
 */
export const repoCredentials = z
  .strictObject({
    username: z
      .string()
      .min(1)
      .max(REPO_CREDENTIAL_CHARACTERS)
      .regex(/^[^:\p{Cc}\p{Cs}]*$/u, 'must not contain colons, control characters or lone surrogates')
      .optional(),
    token: z
      .string()
      .min(1)
      .max(REPO_CREDENTIAL_CHARACTERS)
      .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must not contain control characters or lone surrogates'),
  })
  .meta({ writeOnly: true });
export type RepoCredentials = z.infer<typeof repoCredentials>;

const settable = {
  useCase: useCase.optional(),
  defaultProfile: profile.nullable().optional(),
  defaultPersistencePolicy: persistencePolicy.nullable().optional(),
  defaultRepository: repository.nullable().optional(),
  defaultBranch: branchName.nullable().optional(),
  defaultIdleMinutes: z.int().min(IDLE_MINUTES.min).max(IDLE_MINUTES.max).nullable().optional(),
  wakeOnUse: z.boolean().optional(),
  metadata: metadata.optional(),
  /** null removes them. */
  repoCredentials: repoCredentials.nullable().optional(),
  /** Not settable here: org admins set it by its own route. null is taken for absent. */
  sandboxMachineHourLimit: z
    .number()
    .nullable()
    .refine((value) => value === null, 'must be null or absent: it is set by PATCH /v1/orgs/{orgId}/projects/{projectId}/usage-guardrails')
    .optional(),
};

/** The spec does not show this table, so unknown fields are ignored. */
export const createProjectBody = z.object({
  /** Made up by the server when absent. */
  name: text(1, NAME_CHARACTERS).optional(),
  ...settable,
});
export type CreateProjectBody = z.infer<typeof createProjectBody>;

/** An absent field stays as it is; `metadata` is replaced whole. Unknown fields are ignored, as at create. */
export const updateProjectBody = z.object({ name: text(1, NAME_CHARACTERS).optional(), ...settable });
export type UpdateProjectBody = z.infer<typeof updateProjectBody>;

const orgParams = z.object({ orgId: idText });
const projectParams = z.object({ orgId: idText, projectId: idText });

export const listProjects = defineRoute({
  name: 'listProjects',
  summary: "The org's projects, newest first",
  method: 'GET',
  path: '/v1/orgs/{orgId}/projects',
  auth: ['session', 'api_key'],
  permission: 'project.read',
  request: { params: orgParams, query: pageQuery },
  response: { status: 200, body: z.strictObject({ projects: z.array(project), ...pageFields }) },
  errors: [],
  activity: null,
  published: true,
});

export const createProject = defineRoute({
  name: 'createProject',
  summary: 'Creates a project',
  method: 'POST',
  path: '/v1/orgs/{orgId}/projects',
  auth: ['session', 'api_key'],
  permission: 'project.create',
  request: { params: orgParams, body: createProjectBody },
  response: { status: 201, body: z.strictObject({ project }) },
  errors: [],
  activity: 'project_created',
  published: true,
});

export const getProject = defineRoute({
  name: 'getProject',
  summary: 'A project',
  method: 'GET',
  path: '/v1/orgs/{orgId}/projects/{projectId}',
  auth: ['session', 'api_key'],
  permission: 'project.read',
  request: { params: projectParams },
  response: { status: 200, body: z.strictObject({ project }) },
  errors: [],
  activity: null,
  published: true,
});

export const updateProject = defineRoute({
  name: 'updateProject',
  summary: 'Changes a project; absent fields stay',
  method: 'PATCH',
  path: '/v1/orgs/{orgId}/projects/{projectId}',
  auth: ['session', 'api_key'],
  permission: 'project.update',
  request: { params: projectParams, body: updateProjectBody },
  response: { status: 200, body: z.strictObject({ project }) },
  errors: [],
  activity: 'project_updated',
  published: true,
});

export const deleteProject = defineRoute({
  name: 'deleteProject',
  summary: 'Deletes a project that has no sandboxes; its usage stays',
  method: 'DELETE',
  path: '/v1/orgs/{orgId}/projects/{projectId}',
  auth: ['session'],
  permission: 'project.delete',
  request: { params: projectParams },
  response: { status: 200, body: z.strictObject({ project }) },
  errors: ['project_has_sandboxes'],
  activity: 'project_deleted',
  published: false,
});
