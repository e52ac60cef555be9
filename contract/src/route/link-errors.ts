// Errors of file links and preview hosts, which serve no route of this contract.

export const LINK_ERRORS = {
  // Returned by file links.
  file_link_invalid: { status: 403, meaning: 'The file link is incomplete, or not of this installation.' },
  file_link_expired: { status: 410, meaning: 'The file link has expired, or its sandbox or the right to it is gone.' },
  file_link_unavailable: { status: 503, meaning: 'The sandbox of the file link is asleep, or does not respond.' },
  // Returned on preview hosts.
  preview_link_required: { status: 401, meaning: 'The preview requires a valid link, and the request has none.' },
  preview_link_invalid: { status: 403, meaning: 'The preview link is incomplete, or belongs to another preview.' },
  preview_cross_origin: {
    status: 403,
    meaning: "The request came from a page of another origin, which may not use the visitor's access.",
  },
  preview_not_found: { status: 404, meaning: 'The preview does not exist, or its sandbox was deleted.' },
  preview_upload_stalled: { status: 408, meaning: 'The request body stalled for too long.' },
  preview_link_expired: { status: 410, meaning: 'The preview link has expired.' },
  preview_link_revoked: { status: 410, meaning: 'The preview link was revoked.' },
  preview_not_supported: { status: 501, meaning: 'Previews do not support this kind of request.' },
  preview_answer_broken: {
    status: 502,
    meaning: 'The app behind the preview closed the connection early, or did not send valid HTTP.',
  },
  preview_sandbox_asleep: { status: 503, meaning: 'The sandbox behind the preview is asleep.' },
  preview_sandbox_starting: { status: 503, meaning: 'The sandbox behind the preview is starting. See Retry-After.' },
  preview_sandbox_failed: {
    status: 503,
    meaning: 'The sandbox behind the preview is not running and was not woken; the page says why.',
  },
  preview_timed_out: { status: 504, meaning: 'The app behind the preview did not respond in time.' },
} as const satisfies Record<string, { status: number; meaning: string }>;
