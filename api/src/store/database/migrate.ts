// Migrates the database to the newest schema. Safe with any number of replicas starting at once:
// Kysely's migrator holds an advisory lock and applies everything in one transaction.
import { Migrator, type Migration } from 'kysely/migration';
import * as identity from '../../../migrations/0001-0020/0001_identity.ts';
import * as sandboxes from '../../../migrations/0001-0020/0002_sandboxes.ts';
import * as records from '../../../migrations/0001-0020/0003_records.ts';
import * as lifecycle from '../../../migrations/0001-0020/0004_lifecycle.ts';
import * as people from '../../../migrations/0001-0020/0005_people.ts';
import * as clone from '../../../migrations/0001-0020/0006_clone.ts';
import * as previews from '../../../migrations/0001-0020/0007_previews.ts';
import * as billing from '../../../migrations/0001-0020/0008_billing.ts';
import * as usageRollup from '../../../migrations/0001-0020/0009_usage_rollup.ts';
import * as usageCaps from '../../../migrations/0001-0020/0010_usage_caps.ts';
import * as usageCapWarningEnforced from '../../../migrations/0001-0020/0011_usage_cap_warning_enforced.ts';
import * as previewLinkExpiry from '../../../migrations/0001-0020/0012_preview_link_expiry.ts';
import * as destroyHolds from '../../../migrations/0001-0020/0013_destroy_holds.ts';
import * as metricsSampleAge from '../../../migrations/0001-0020/0014_metrics_sample_age.ts';
import * as activityProjectKind from '../../../migrations/0001-0020/0015_activity_project_kind.ts';
import * as durableStep from '../../../migrations/0001-0020/0016_durable_step.ts';
import * as previewLinkKey from '../../../migrations/0001-0020/0017_preview_link_key.ts';
import * as orgCreator from '../../../migrations/0001-0020/0018_org_creator.ts';
import * as previewLinkEmbeddable from '../../../migrations/0001-0020/0019_preview_link_embeddable.ts';
import * as activityPartitions from '../../../migrations/0001-0020/0020_activity_partitions.ts';
import * as secretKeys from '../../../migrations/0021-0040/0023_secret_keys.ts';
import * as reauthentication from '../../../migrations/0021-0040/0025_reauthentication.ts';
import * as totp from '../../../migrations/0021-0040/0026_totp.ts';
import * as signIns from '../../../migrations/0021-0040/0027_sign_ins.ts';
import * as refreshGeneration from '../../../migrations/0021-0040/0028_refresh_generation.ts';
import * as passkeys from '../../../migrations/0021-0040/0029_passkeys.ts';
import * as egress from '../../../migrations/0021-0040/0030_egress.ts';
import * as spentGrants from '../../../migrations/0021-0040/0032_spent_grants.ts';
import * as egressDenied from '../../../migrations/0021-0040/0033_egress_denied.ts';
import * as sandboxDataKeys from '../../../migrations/0021-0040/0034_sandbox_data_keys.ts';
import * as sso from '../../../migrations/0021-0040/0035_sso.ts';
import * as agentCredentials from '../../../migrations/0021-0040/0036_agent_credentials.ts';
import * as agentSessions from '../../../migrations/0021-0040/0037_agent_sessions.ts';
import * as agentSessionStarts from '../../../migrations/0021-0040/0038_agent_session_starts.ts';
import * as agentSessionCreators from '../../../migrations/0021-0040/0039_agent_session_creators.ts';
import * as activityFollow from '../../../migrations/0021-0040/0040_activity_follow.ts';
import * as operatorOrg from '../../../migrations/0041_operator_org.ts';
import * as lastActiveBy from '../../../migrations/0042_last_active_by.ts';
import * as credentialOrigin from '../../../migrations/0043_credential_origin.ts';
import * as agentSessionEntries from '../../../migrations/0044_agent_session_entries.ts';
import * as agentUnattended from '../../../migrations/0045_agent_unattended.ts';
import * as awakeProcess from '../../../migrations/0046_awake_process.ts';
import * as sandboxKey from '../../../migrations/0047_sandbox_key.ts';
import * as sandboxVariables from '../../../migrations/0048_sandbox_variables.ts';
import * as sandboxCloneOutput from '../../../migrations/0049_sandbox_clone_output.ts';
import * as agentTerminals from '../../../migrations/0050_agent_terminals.ts';
import * as agentConversations from '../../../migrations/0051_agent_conversations.ts';
import { openDatabase } from './database.ts';

const MIGRATIONS: Record<string, Migration> = {
  '0001_identity': identity,
  '0002_sandboxes': sandboxes,
  '0003_records': records,
  '0004_lifecycle': lifecycle,
  '0005_people': people,
  '0006_clone': clone,
  '0007_previews': previews,
  '0008_billing': billing,
  '0009_usage_rollup': usageRollup,
  '0010_usage_caps': usageCaps,
  '0011_usage_cap_warning_enforced': usageCapWarningEnforced,
  '0012_preview_link_expiry': previewLinkExpiry,
  '0013_destroy_holds': destroyHolds,
  '0014_metrics_sample_age': metricsSampleAge,
  '0015_activity_project_kind': activityProjectKind,
  '0016_durable_step': durableStep,
  '0017_preview_link_key': previewLinkKey,
  '0018_org_creator': orgCreator,
  '0019_preview_link_embeddable': previewLinkEmbeddable,
  '0020_activity_partitions': activityPartitions,
  '0023_secret_keys': secretKeys,
  '0025_reauthentication': reauthentication,
  '0026_totp': totp,
  '0027_sign_ins': signIns,
  '0028_refresh_generation': refreshGeneration,
  '0029_passkeys': passkeys,
  '0030_egress': egress,
  '0032_spent_grants': spentGrants,
  '0033_egress_denied': egressDenied,
  '0034_sandbox_data_keys': sandboxDataKeys,
  '0035_sso': sso,
  '0036_agent_credentials': agentCredentials,
  '0037_agent_sessions': agentSessions,
  '0038_agent_session_starts': agentSessionStarts,
  '0039_agent_session_creators': agentSessionCreators,
  '0040_activity_follow': activityFollow,
  '0041_operator_org': operatorOrg,
  '0042_last_active_by': lastActiveBy,
  '0043_credential_origin': credentialOrigin,
  '0044_agent_session_entries': agentSessionEntries,
  '0045_agent_unattended': agentUnattended,
  '0046_awake_process': awakeProcess,
  '0047_sandbox_key': sandboxKey,
  '0048_sandbox_variables': sandboxVariables,
  '0049_sandbox_clone_output': sandboxCloneOutput,
  '0050_agent_terminals': agentTerminals,
  '0051_agent_conversations': agentConversations,
};

/**
 * Applies missing migrations over a dedicated connection; returns their names. Throws if a
 * migration fails; the run is then rolled back.
 */
export async function migrate(url: string): Promise<string[]> {
  let broken: Error | undefined;
  const onIdleError = (error: Error): void => {
    broken = error;
  };
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError });
  try {
    const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(MIGRATIONS) } });
    const { error, results } = await migrator.migrateToLatest();
    if (error !== undefined) throw error;
    if (broken !== undefined) throw broken;
    return (results ?? []).map((result) => result.migrationName);
  } finally {
    await db.destroy();
  }
}
