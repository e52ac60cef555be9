// The page to which the payment provider returns the browser. Knows nothing of the payment: the
// provider reports that to the service directly.
import { html } from '../rules/html.ts';
import { RETURN_PATH } from '../services/billing/billing.ts';
import { shown, type Page } from './parts/site.ts';

export const billingReturnPage: Page = {
  path: RETURN_PATH,
  get: async (_site, request) =>
    request.query('state') === 'bought'
      ? shown(
          'Back from the payment page',
          html`<p>The plan applies as soon as the payment provider confirms the payment, usually within a minute.</p>
            <p>You can close this page.</p>`,
        )
      : shown(
          'Nothing was bought',
          html`<p>You left the payment page before the payment was complete. The plan is unchanged.</p>
            <p>You can close this page.</p>`,
        ),
};
