// The certified provider of the npm package oidc-provider with a client and two users.
// Arguments: the folder with node_modules, the port, the address of the console.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, port, console_] = process.argv.slice(2);
const entry = createRequire(`${folder}/package.json`).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(entry).href);
const GROUPS = { ann: ["kafka-admins"], ben: ["kafka-readers", "staff"], eve: ["staff"], admin: ["kafka-admins"] };
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{
    client_id: "ottla-console", client_secret: "a secret: with/signs+", redirect_uris: [`${console_}/oidc/callback`],
    grant_types: ["authorization_code"], response_types: ["code"],
  }],
  claims: { openid: ["sub", "preferred_username", "groups"] },
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  findAccount: (_, id) => ({ accountId: id, claims: async () => ({ sub: id, preferred_username: id, groups: GROUPS[id] ?? [] }) }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
