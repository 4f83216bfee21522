"""Phy-SSM: encoder, unit, decoder, objective, and the forecaster around them."""

from physsm.models.phy_ssm.forecaster import PhySSM

MODEL = PhySSM
