"""An external scaler for KEDA: replicas by rate and lag for ScaledObjects that ask for them.

`messages` describes KEDA's gRPC contract, `triggers` the groups that ScaledObjects name, `server`
replies. Needs the extra `binwright[keda]`.
"""
