// Projects: what sandboxes belong to inside an org, and the defaults they fall back to.
import { z } from 'zod';
import { exampleProject } from '../route/examples.ts';
import { IDLE_MINUTES, METADATA_LIMITS, NAME_CHARACTERS, REPO_CREDENTIAL_CHARACTERS } from '../route/limits.ts';
import { profile } from '../sandboxes/machine-sizes.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { branchName, labels, metadata, persistencePolicy, repository } from '../sandboxes/fields.ts';
import { idText, text, timestamp } from '../route/text.ts';

const useCase = text(1, 64).describe(
  "Free text with one known value: `external` means that the machines serve the operator's product users; only then may they be ephemeral.",
);
export const DEFAULT_USE_CASE = 'internal';
export const EXTERNAL_USE_CASE = 'external';

const idleMinutesText = `Minutes without use after which its \`sleep_resume\` sandboxes go to sleep by themselves; 0: never; null: ${IDLE_MINUTES.default}.`;
const wakeOnUseText =
  'Whether a command, file call, preview or connection (a terminal, a tunnel to a port) of a stopped sandbox wakes it.';

export const project = z
  .strictObject({
    id: idText,
    orgId: idText,
    name: z.string(),
    useCase: z.string().describe("`external`: the machines serve the operator's product users."),
    defaultRepository: z.string().nullable(),
    defaultBranch: z.string().nullable(),
    defaultProfile: profile.nullable(),
    defaultPersistencePolicy: persistencePolicy.nullable(),
    defaultIdleMinutes: z.int().nonnegative().nullable().describe(idleMinutesText),
    wakeOnUse: z.boolean().describe(wakeOnUseText),
    sandboxMachineHourLimit: z
      .number()
      .nonnegative()
      .nullable()
      .describe('Machine hours a billing period; null: no cap of its own.'),
    metadata: labels,
    hasRepoCredentials: z
      .boolean()
      .describe('Whether credentials for its repositories are stored; they are never answered.'),
    createdAt: timestamp,
    updatedAt: timestamp,
    deletedAt: timestamp.nullable(),
  })
  .meta({ id: 'Project', description: 'What sandboxes belong to inside an org, and the defaults they fall back to.' });
export type Project = z.infer<typeof project>;

/**
 * What a git host asks for over HTTPS: a token, and a user name where the host wants one; of the
 * characters that Basic authentication takes (RFC 7617). Encrypted at rest, never answered, never
 * logged. `writeOnly` is the document's word for it; messages about wrong values show none below
 * it.
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
  .meta({
    id: 'RepoCredentials',
    writeOnly: true,
    description: 'A token, and a user name where the git host wants one. Encrypted at rest, never answered.',
  });
export type RepoCredentials = z.infer<typeof repoCredentials>;

const settable = {
  useCase: useCase.optional(),
  defaultProfile: profile.nullable().optional(),
  defaultPersistencePolicy: persistencePolicy.nullable().optional(),
  defaultRepository: repository.nullable().optional(),
  defaultBranch: branchName.nullable().optional(),
  defaultIdleMinutes: z
    .int()
    .min(IDLE_MINUTES.min)
    .max(IDLE_MINUTES.max)
    .nullable()
    .optional()
    .describe(idleMinutesText),
  wakeOnUse: z.boolean().optional().describe(wakeOnUseText),
  metadata: metadata
    .optional()
    .describe(
      `Replaced whole. Flat labels; values are strings, numbers or booleans; at most ${METADATA_LIMITS.keys} keys.`,
    ),
  repoCredentials: repoCredentials
    .nullable()
    .optional()
    .describe('Encrypted at rest, never answered; null removes them.'),
  sandboxMachineHourLimit: z
    .number()
    .nullable()
    .refine(
      (value) => value === null,
      'must be null or absent: it is set by PATCH /v1/orgs/{orgId}/projects/{projectId}/usage-guardrails',
    )
    .optional()
    .meta({
      type: 'null',
      description: 'Not settable here: org admins set it by its own route. null is taken for absent.',
    }),
};

/** The spec does not show this table, so unknown fields are ignored. */
export const createProjectBody = z.object({
  name: text(1, NAME_CHARACTERS).optional().describe('Made up by the server when absent.'),
  ...settable,
});
export type CreateProjectBody = z.infer<typeof createProjectBody>;

/**
 * An absent field stays as it is; `metadata` is replaced whole. Unknown fields are ignored, as at
 * create.
 */
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
  example: { query: { limit: 20 }, answer: { projects: [exampleProject], nextCursor: null, hasMore: false } },
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
  example: {
    body: {
      name: 'storefront',
      useCase: 'external',
      defaultProfile: 'agent-standard',
      defaultIdleMinutes: 15,
      wakeOnUse: true,
    },
    answer: { project: exampleProject },
  },
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
  example: { answer: { project: exampleProject } },
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
  example: {
    body: { defaultIdleMinutes: 60, wakeOnUse: false },
    answer: { project: { ...exampleProject, defaultIdleMinutes: 60, wakeOnUse: false } },
  },
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
