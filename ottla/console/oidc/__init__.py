"""Logins with an identity provider: OpenID Connect, the authorization code flow with PKCE."""
